"""What people bring along from elsewhere is told at its place, with what to write here; `--fix` writes it where it is
no guess.

A line `// ^^ CODE message` tells of the line above it, carets below what is wrong. A block ```fixed``` behind a case is
what `lint --fix` makes of it, without an error left.
"""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from policyengine.commands.linting.fix import fix_all
from policyengine.commands.lsp import toolchain
from policyengine.language.diagnostics import Diagnostic, Severity, Source
from policyengine.server.language_server.project import Project
from tests.language.lint.findings import BLOCK, checked_and_linted

FOLDER = Path(__file__).parent
_CASE = re.compile(r"^```policy\n(.*?)\n```\n(?:\n?```fixed\n(.*?)\n```)?", re.DOTALL | re.MULTILINE)
_TOLD = re.compile(r"// *(\^+) (PE\d{4}) (.*)")


class Told(NamedTuple):
    line: int
    start: int
    end: int
    code: str
    message: str


def cases() -> list[object]:
    found = []
    for file in sorted(FOLDER.glob("*.md")):
        for number, (case, fixed) in enumerate(_CASE.findall(file.read_text(encoding="utf-8")), 1):
            found.append(pytest.param(case, fixed, id=f"{file.stem}-{number}"))
    return found


def as_file(members: str) -> str:
    return f"{members}\n" if BLOCK.search(members) else f'policy "p" {{\n{members}\n}}\n'


def taken_apart(case: str) -> tuple[str, list[Told]]:
    """The text without what is told of it, and that."""
    lines: list[str] = []
    told: list[Told] = []
    before = 0 if BLOCK.search(case) else 1
    for line in case.split("\n"):
        if found := _TOLD.fullmatch(line):
            told.append(Told(len(lines) + before, found.start(1), found.end(1), found[2], found[3]))
        else:
            lines.append(line)
    return as_file("\n".join(lines)), told


def placed(finding: Diagnostic, source: Source) -> Told:
    line, column = source.line_column(finding.span.start)
    width = len(list(takewhile(lambda sign: sign != "\n", source.slice(finding.span))))
    return Told(line, column - 1, column - 1 + width, finding.code, finding.message)


@pytest.mark.parametrize(("case", "fixed"), cases())
def test_a_habit_is_told_with_what_to_write_in_an_editor_too(case: str, fixed: str, tmp_path: Path) -> None:
    text, told = taken_apart(case)
    assert told
    errors, opinions = checked_and_linted(text)
    errors = errors or [one for one in opinions if one.severity is Severity.WARNING]
    assert sorted(placed(one, Source("p.policy", text)) for one in errors) == sorted(told)

    file = tmp_path / "p.policy"
    project = Project(toolchain())
    shown, _ = project.findings(project.open(file.as_uri(), text, 1))
    assert {(one.code, one.message) for one in shown} >= {(one.code, one.message) for one in told}

    file.write_text(text, encoding="utf-8")
    assert bool(fix_all([str(file)])) == bool(fixed)
    if fixed:
        made = file.read_text(encoding="utf-8")
        assert made == as_file(fixed)
        assert checked_and_linted(made)[0] == []
