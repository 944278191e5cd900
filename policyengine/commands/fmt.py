"""`policyengine fmt`: policy files in the one style."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from policyengine import regular_file
from policyengine.commands.options import is_coloured, output_option, stdin_name_option
from policyengine.commands.policy_files import MANIFESTS, standard_input
from policyengine.control_characters import escaped
from policyengine.language.diagnostics import Source, render
from policyengine.language.format import format_source
from policyengine.language.parse import SourceError, read_source


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is not in the style.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change, and exit with 1 if anything would.")
@output_option("text", "json", help="json: a list of `{file, changed}` in the place of the lines about them.")
@stdin_name_option
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
def fmt(check: bool, diff: bool, output: str, stdin_name: str, paths: tuple[str, ...]) -> None:
    """Put policy files into the one style. A folder stands for all *.policy files in it, - for standard input, which
    is written to standard output.

    Exit codes: 0 done, or nothing to do; 1 a file has mistakes, or would change (--check, --diff); 2 a file cannot
    be read.
    """
    if output == "json" and (diff or "-" in paths):
        raise click.UsageError("-o json tells which files change; it goes with neither --diff nor `-`")
    worst, changed = 0, dict[str, bool]()
    for path in dict.fromkeys(_files(paths)):
        name = stdin_name if path == Path("-") else str(path)
        code, changed[name] = _formatted(path, name, check, diff, output == "text")
        worst = max(worst, code)
    if output == "json":
        click.echo(json.dumps([{"file": name, "changed": differs} for name, differs in changed.items()], indent=2))
    elif check or diff or paths != ("-",):
        click.echo(_summary(len(changed), sum(changed.values()), check or diff), err=True)
    sys.exit(worst)


def _files(paths: tuple[str, ...]) -> Iterator[Path]:
    for name in paths:
        path = Path(name)
        if regular_file.is_folder(path):
            yield from sorted(found for found in path.rglob("*.policy") if found.is_file())
        else:
            yield path


def _formatted(path: Path, name: str, check: bool, diff: bool, told: bool) -> tuple[int, bool]:
    """The exit code that a file, or standard input, asks for, and whether it is, or would be, changed. `told`: whether
    what changes is told, line by line."""
    is_stdin = path == Path("-")
    if path.suffix in MANIFESTS:
        click.echo(f"error: `{escaped(name)}` is a manifest; fmt writes policy files", err=True)
        return 2, False
    try:
        source = standard_input(name) if is_stdin else read_source(path)
    except SourceError as error:
        click.echo(f"error: {escaped(str(error))}", err=True)
        return 2, False
    text, findings = format_source(source)
    if findings:
        click.echo(render(findings, source, color=is_coloured(sys.stderr)), err=True)
        return 1, False
    # Byte for byte: line endings and a byte order mark are of the style too.
    differs = source.text != text if is_stdin else path.read_bytes() != text.encode()
    if diff and differs:
        click.echo(_difference(source, text), nl=False)
    elif check and differs and told:
        click.echo(f"would change {escaped(name)}")
    if check or diff:
        return int(differs), differs
    if is_stdin:
        click.echo(text, nl=False)
    elif differs and not _is_written(path, text, told):
        return 2, False
    return 0, differs


def _is_written(path: Path, text: str, told: bool) -> bool:
    try:
        regular_file.replace(path, text.encode())
    except OSError as error:
        click.echo(
            f"error: `{escaped(str(path))}` cannot be written: {(error.strerror or str(error)).lower()}", err=True
        )
        return False
    if told:
        click.echo(f"changed {escaped(str(path))}")
    return True


def _difference(source: Source, text: str) -> str:
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, source.file, source.file)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _summary(seen: int, changed: int, dry: bool) -> str:
    if not seen:
        return "no *.policy files found"
    done = "would change" if dry else "changed"
    return f"{done} {changed} of {seen} file{'' if seen == 1 else 's'}"
