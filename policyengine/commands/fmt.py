"""`policyengine fmt`: policy files in the one style."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from policyengine.commands.options import is_coloured
from policyengine.control_characters import escaped
from policyengine.language.diagnostics import Source, render
from policyengine.language.format import format_source
from policyengine.language.parse import SourceError, read_source
from policyengine.regular_file import is_folder


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is not in the style.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change, and exit with 1 if anything would.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
def fmt(check: bool, diff: bool, paths: tuple[str, ...]) -> None:
    """Put policy files into the one style. A folder stands for all *.policy files in it.

    Exit codes: 0 done, or nothing to do; 1 a file has mistakes, or would change (--check, --diff); 2 a file cannot
    be read.
    """
    worst, changed, seen = 0, 0, 0
    for path in _files(paths):
        seen += 1
        code, differs = _format(path, check, diff)
        worst, changed = max(worst, code), changed + differs
    click.echo(_summary(seen, changed, check or diff), err=True)
    sys.exit(worst)


def _files(paths: tuple[str, ...]) -> Iterator[Path]:
    for name in paths:
        path = Path(name)
        if is_folder(path):
            yield from sorted(found for found in path.rglob("*.policy") if found.is_file())
        else:
            yield path


def _format(path: Path, check: bool, diff: bool) -> tuple[int, bool]:
    """The exit code a file asks for, and whether it is, or would be, changed."""
    try:
        source = read_source(path)
    except SourceError as error:
        click.echo(f"error: {escaped(str(error))}", err=True)
        return 2, False
    text, findings = format_source(source)
    if findings:
        click.echo(render(findings, source, color=is_coloured(sys.stderr)), err=True)
        return 1, False
    if _unchanged(path, text):
        return 0, False
    if diff:
        click.echo(_difference(source, text), nl=False)
    elif check:
        click.echo(f"would change {escaped(str(path))}")
    else:
        return _write(path, text), True
    return 1, True


def _unchanged(path: Path, text: str) -> bool:
    """Byte for byte: line endings and a byte order mark are of the style too."""
    return path.read_bytes() == text.encode()


def _write(path: Path, text: str) -> int:
    try:
        path.write_bytes(text.encode())
    except OSError as error:
        click.echo(
            f"error: `{escaped(str(path))}` cannot be written: {(error.strerror or str(error)).lower()}", err=True
        )
        return 2
    click.echo(f"changed {escaped(str(path))}")
    return 0


def _difference(source: Source, text: str) -> str:
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, source.file, source.file)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _summary(seen: int, changed: int, dry: bool) -> str:
    if not seen:
        return "no *.policy files found"
    done = "would change" if dry else "changed"
    return f"{done} {changed} of {seen} file{'' if seen == 1 else 's'}"
