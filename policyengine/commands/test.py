"""`policyengine test`: run the tests of policies, see what they cover, and what they would not notice."""

from __future__ import annotations

import sys

import click

from policyengine.commands.options import Number, is_coloured, output_option, param_option
from policyengine.control_characters import escaped_lines

FAILED, UNUSABLE = 1, 2


@click.command()
@output_option("text", "json", "junit", older="--format", help="How outcomes are written.")
@click.option("--coverage", is_flag=True, help="Show which branches of the policies no test has seen.")
@click.option(
    "--coverage-min",
    "--fail-under",
    type=Number(0, 100),
    metavar="PERCENT",
    help="Exit 1 if less is covered. Implies --coverage.",
)
@click.option("--mutate", is_flag=True, help="Change the policies in small ways; show the changes no test notices.")
@click.option(
    "--mutation-min",
    type=Number(0, 100),
    metavar="PERCENT",
    help="Exit 1 if fewer changes are noticed. Implies --mutate.",
)
@click.option("--mutants", type=click.IntRange(min=1), default=200, help="Changes tried a policy.")
@param_option
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
def test(
    output: str,
    coverage: bool,
    coverage_min: float | None,
    mutate: bool,
    mutation_min: float | None,
    mutants: int,
    params: dict[str, str],
    paths: tuple[str, ...],
) -> None:
    """Run the tests of policies.

    PATH is a *.policy file with `test` members, a manifest with ConfigMaps that hold policies, a suite (*.test.yaml)
    with tests of a policy beside it, or a folder of these.

    Exit codes: 0 every test passed; 1 a test failed, proves nothing, or there is none, or too little is covered or
    noticed; 2 a file cannot be used, or a policy in it has errors.
    """
    from policyengine.commands.testing.execution import Settings, run
    from policyengine.commands.testing.report import written

    settings = Settings(
        coverage=coverage or coverage_min is not None,
        mutants=mutants if mutate or mutation_min is not None else 0,
        params=params,
    )
    report = run(paths, settings)
    click.echo(written(report, output, is_coloured(sys.stdout)), nl=False)
    for problem in report.problems:
        click.echo(escaped_lines(problem if problem.startswith("error") else f"error: {problem}"), err=True)
    if report.problems:
        sys.exit(UNUSABLE)
    short = _too_little("covered", report.coverage_percent, coverage_min)
    short += _too_little("noticed", report.mutation_percent, mutation_min)
    for message in [*([] if report.tests else ["no tests were found"]), *short]:
        click.echo(f"error: {message}", err=True)
    sys.exit(0 if report.passed and not short else FAILED)


def _too_little(what: str, found: float, least: float | None) -> list[str]:
    if least is None or found >= least:
        return []
    return [f"{found:.1f} % is {what}, and {least:g} % is wanted"]
