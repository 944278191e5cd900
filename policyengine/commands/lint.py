"""`policyengine lint`: what is wrong, or questionable, in policy files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from policyengine.commands.policy_files import PolicyText
    from policyengine.language.diagnostics import Diagnostic

LEVELS = ("error", "warning", "info")
FINDINGS, UNUSABLE = 1, 2


class UnknownCodeError(click.ClickException):
    """`--explain` of a code that does not exist."""

    exit_code = UNUSABLE


Found = Sequence[tuple["PolicyText", "list[Diagnostic]"]]


@click.command()
@click.option(
    "--format",
    "output",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="How findings are written.",
)
@click.option(
    "--fail-level",
    type=click.Choice(LEVELS),
    default="warning",
    show_default=True,
    help="The least severity that makes the exit code 1.",
)
@click.option("--explain", "code", metavar="CODE", help="Print the page of a finding's code, such as PE1001.")
@click.argument("paths", nargs=-1, metavar="PATH…")
def lint(output: str, fail_level: str, code: str | None, paths: tuple[str, ...]) -> None:
    """Check policy files. All findings of a file are reported in one run.

    PATH is a *.policy file, a manifest with ConfigMaps that hold policies, or a folder of both.

    Exit codes: 0 nothing found at the fail level; 1 findings; 2 a file is missing, empty, too large or not UTF-8.
    """
    if code is not None:
        _explain(code)
        return
    if not paths:
        raise click.UsageError("name at least one file or folder, or a code with --explain")
    sys.exit(_lint(paths, output, fail_level))


def _lint(paths: Sequence[str], output: str, fail_level: str) -> int:
    from policyengine.commands.policy_files import texts_and_errors

    texts, errors = texts_and_errors(paths)
    found = [(text, _findings(text)) for text in texts]
    if output == "json":
        _write_json(found)
    else:
        _write_text(found)
    for error in errors:
        click.echo(f"error: {error}", err=True)
    if errors:
        return UNUSABLE
    return FINDINGS if _worst(found) <= LEVELS.index(fail_level) else 0


def _findings(text: PolicyText) -> list[Diagnostic]:
    from policyengine.catalogue import checked

    return [text.placed(finding) for finding in checked(text.source)[1]]


def _worst(found: Found) -> int:
    """The place among `LEVELS` of the worst finding; behind them all when there is none."""
    severities = [LEVELS.index(one.severity.value) for _, findings in found for one in findings]
    return min(severities, default=len(LEVELS))


def _write_json(found: Found) -> None:
    from policyengine.language.diagnostics import to_json

    entries = [to_json(finding, text.shown) for text, findings in found for finding in findings]
    click.echo(json.dumps(entries, indent=2, ensure_ascii=False))


def _write_text(found: Found) -> None:
    from policyengine.language.diagnostics import render

    colour = sys.stdout.isatty()
    for text, findings in found:
        if findings:
            click.echo(render(findings, text.shown, color=colour))
    count = sum(len(findings) for _, findings in found)
    if found:
        click.echo(f"{_plural(len(found), 'policy file')} checked, {_plural(count, 'finding')}", err=True)


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _explain(code: str) -> None:
    from policyengine.language.diagnostics import CODES

    import_module("policyengine.catalogue")  # whoever reports a code registers its page
    entry = CODES.get(code.upper())
    if entry is None:
        raise UnknownCodeError(f"no finding has the code `{code}`; codes look like `PE1001`")
    title, page = entry
    click.echo(f"{code.upper()}: {title}\n\n{page}")
