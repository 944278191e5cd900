"""`policyengine lint`: what is wrong, or questionable, in policy files."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import click

from policyengine.commands.options import UnusableInput, output_option, param_option, stdin_name_option
from policyengine.control_characters import escaped_lines

FORMATS = ("text", "json", "github", "sarif", "junit")
LEVELS = ("error", "warning", "info")
FINDINGS, UNUSABLE = 1, 2


@click.command()
@output_option(*FORMATS, older="--format", help="How findings are written.")
@click.option(
    "--fail-level", type=click.Choice(LEVELS), default="warning", help="The least severity that makes the exit code 1."
)
@click.option(
    "--fix", is_flag=True, help="Write the fixes that keep the meaning into the files, then check again; not with `-`."
)
@click.option(
    "--explain",
    "code",
    metavar="CODE",
    help="Print the page of a code, such as PE1001; of files also the smallest clusters that show its findings.",
)
@stdin_name_option
@param_option
@click.argument("paths", nargs=-1, metavar="PATH…")
def lint(
    output: str,
    fail_level: str,
    fix: bool,
    code: str | None,
    stdin_name: str,
    params: dict[str, str],
    paths: tuple[str, ...],
) -> None:
    """Check policy files. All findings of a file are reported in one run.

    PATH is a *.policy file, a manifest with ConfigMaps that hold policies, a folder of both, or - for standard input.
    Files named together are loaded together, so that one may import another's libraries.

    Severities, codes to ignore and the budget of a decision are settled in `policyengine.toml`, section `[lint]`, or
    in `pyproject.toml`, section `[tool.policyengine.lint]`.

    With --explain CODE FILE[:LINE]: the findings of that code, each with the smallest clusters that show it.

    Exit codes: 0 nothing found at the fail level; 1 findings; 2 a file is missing, empty, too large or not UTF-8, or
    a `--param` fits no policy.
    """
    if code is not None:
        _explain(code.upper(), paths, params)
        return
    if not paths:
        raise click.UsageError("name at least one file or folder, - for standard input, or a code with --explain")
    if fix and "-" in paths:
        raise click.UsageError("--fix writes into files, and `-` is none; name the file")
    with _without_collection():
        verdict = _lint(paths, stdin_name, params, output, fail_level, fix)
    sys.exit(verdict)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Imports and trees leave no garbage behind, and looking for it takes a fifth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _lint(
    paths: Sequence[str], stdin_name: str, params: Mapping[str, object], output: str, fail_level: str, fix: bool
) -> int:
    from policyengine.commands.linting.files import linted
    from policyengine.commands.linting.formats import written
    from policyengine.commands.policy_files import texts_and_errors

    if fix:
        _fix(paths)
    texts, errors = texts_and_errors(paths, stdin_name)
    found = linted(texts, params)
    click.echo(written(found, output), nl=False)
    for error in errors:
        click.echo(f"error: {escaped_lines(str(error))}", err=True)
    if output == "text" and found:
        count = sum(len(one.findings) for one in found)
        click.echo(f"{_plural(len(found), 'policy file')} checked, {_plural(count, 'finding')}", err=True)
    if errors:
        return UNUSABLE
    worst = min(
        (LEVELS.index(finding.severity.value) for one in found for finding in one.findings), default=len(LEVELS)
    )
    return FINDINGS if worst <= LEVELS.index(fail_level) else 0


def _fix(paths: Sequence[str]) -> None:
    from policyengine.commands.linting.fix import fix_all
    from policyengine.language.diagnostics import printable

    for one in fix_all(paths):
        click.echo(f"fixed {one.code} in {printable(one.file)}:{one.line}: {printable(one.title)}", err=True)


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _explain(code: str, paths: Sequence[str], params: Mapping[str, object]) -> None:
    from policyengine.commands.linting.explanations import explained, page_of

    page = page_of(code)
    if page is None:
        raise UnusableInput(f"no finding has the code `{code}`; codes look like `PE1001`")
    click.echo(page)
    if paths:
        for part in explained(code, paths, params):
            click.echo(f"\n{part}", nl=False)
