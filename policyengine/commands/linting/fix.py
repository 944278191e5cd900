"""`lint --fix`: safe fixes written into the files, until none is left."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from policyengine import regular_file
from policyengine.commands.linting.files import Linted, linted
from policyengine.commands.policy_files import texts_and_errors
from policyengine.language.diagnostics import Diagnostic, Edit, Source, has_errors
from policyengine.language.edits import applied
from policyengine.language.parse import SourceError, parse_file

SAFE_ERRORS = frozenset({"PE0102", "PE0103", "PE0104", "PE0205"})
"""Errors of syntax whose fix is no guess: `=` for `==`, words for operators, `;`, typographic quotes."""
MOST_ROUNDS = 10
"""A fix may uncover another one; more in a row than this are a bug in a rule, and nothing to wait for."""
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fix that was applied: where the finding was, and what was done."""

    file: str
    line: int
    code: str
    title: str


def fix_all(paths: Sequence[str]) -> list[Fixed]:
    """Applies every safe fix to the files of the paths, and to those uncovered by it.

    Of fixes that touch each other one is applied in a round. A file is written only if all its texts are still read
    as before, without a new mistake of syntax.

    Raises:
        SourceError: a file cannot be written.
        SettingsError: the settings that hold for a file make no sense.
    """
    done: list[Fixed] = []
    for _ in range(MOST_ROUNDS):
        texts, _ = texts_and_errors(paths)
        by_file: dict[str, list[Linted]] = {}
        for one in linted(texts, most=None):
            by_file.setdefault(one.text.shown.file, []).append(one)
        applied = [fixed for group in by_file.values() for fixed in _fix_file(group)]
        if not applied:
            break
        done += applied
    return done


def _fix_file(group: Sequence[Linted]) -> list[Fixed]:
    """Applies what fits together to one file."""
    shown = group[0].text.shown
    chosen = list(_apart(shown.text, (finding for one in group for finding in one.findings if _is_safe(finding))))
    if not chosen:
        return []
    text = applied(shown.text, [edit for finding in chosen if finding.fix for edit in finding.fix.edits])
    try:
        if text == shown.text or not _reads_as_before(group, text):
            return []
        _write(Path(shown.file), text)
    except OSError as error:
        raise SourceError(f"`{shown.file}` cannot be written: {regular_file.reason(error)}") from None
    return [
        Fixed(shown.file, shown.line_column(finding.span.start)[0], finding.code, finding.fix.title)
        for finding in chosen
        if finding.fix
    ]


def _is_safe(finding: Diagnostic) -> bool:
    fix = finding.fix
    return fix is not None and bool(fix.edits) and (fix.safe or finding.code in SAFE_ERRORS)


def _apart(text: str, findings: Iterator[Diagnostic]) -> Iterator[Diagnostic]:
    """The findings in order of place, without those whose edits touch an earlier one's, as what both leave could become
    one token. Behind lines that are taken out whole another edit may begin."""
    free = 0
    seen: set[tuple[Edit, ...]] = set()
    for finding in sorted(findings, key=lambda one: min(edit.span.start for edit in one.fix.edits) if one.fix else 0):
        edits = finding.fix.edits if finding.fix else ()
        last = max(edits, key=lambda edit: (edit.span.end, edit.span.start))
        if min(edit.span.start for edit in edits) >= free and edits not in seen:
            seen.add(edits)
            end = last.span.end
            free = end if text[last.span.start : end].endswith("\n") else end + 1
            yield finding


def _reads_as_before(group: Sequence[Linted], text: str) -> bool:
    """Whether the file would still hold as many texts, and none that parses worse."""
    with tempfile.TemporaryDirectory(prefix="policyengine-") as folder:
        place = Path(folder) / Path(group[0].text.shown.file).name
        place.write_bytes(text.encode())
        texts, errors = texts_and_errors([str(place)])
    if errors or len(texts) != len(group):
        return False
    return _mistakes(one.source for one in texts) <= _mistakes(one.text.source for one in group)


def _mistakes(sources: Iterable[Source]) -> int:
    """How many texts do not parse."""
    return sum(has_errors(parse_file(source)[1]) for source in sources)


def _write(path: Path, text: str) -> None:
    mark = _MARK if path.read_bytes().startswith(_MARK) else b""
    regular_file.replace(path, mark + text.encode())
