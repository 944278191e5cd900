"""Findings: what is wrong in a policy, where, and how to put it right; and how they are shown.

Every finding has a stable code. `PE0xxx` are about syntax, `PE1xxx` about names and types, `PE2xxx` about
members, `PE3xxx` are opinions. The page of a code, shown by `lint --explain`, is registered in `CODES` by the
module that reports it. Policy text is untrusted: nothing of it reaches a terminal unescaped.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from msgspec import Struct

from policyengine.language.syntax import Span


class Severity(Enum):
    """How bad a finding is; an error keeps a policy from being loaded."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Edit(Struct, frozen=True):
    """Replace what stands in the span with the text."""

    span: Span
    text: str


class Fix(Struct, frozen=True):
    """Edits that put a finding right, with what they do in a few words: ``write `==` ``."""

    title: str
    edits: tuple[Edit, ...] = ()
    safe: bool = False
    """Whether it may be applied unseen (`lint --fix`): it is no guess at what was meant."""


def replacing(span: Span, text: str, safe: bool = False) -> Fix:
    """A fix that writes something else in a place; `safe` where it cannot but be meant: `lint --fix` applies it."""
    return Fix(f"write `{text}`", (Edit(span, text),), safe)


def wrapped(span: Span, before: str, after: str) -> Fix:
    """A fix that writes something around a place."""
    edits = (Edit(Span(span.start, span.start), before), Edit(Span(span.end, span.end), after))
    return Fix(f"write `{before}…{after}`", edits)


class Related(Struct, frozen=True):
    """Another place that explains the finding: `opened here`."""

    span: Span
    label: str


class Diagnostic(Struct, frozen=True):
    """One finding. The message is a sentence in lower case, without a full stop, with the input in backticks."""

    code: str
    severity: Severity
    message: str
    file: str
    span: Span
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    steps: tuple[Related, ...] = ()
    """How it is known, of what has a proof: each place and what follows from it."""


@dataclass(frozen=True)
class Source:
    """A file's name and text, and the way from an offset to a line and a column, both from 1."""

    file: str
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        """Where the lines begin."""
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    @property
    def line_count(self) -> int:
        """How many lines the text has; an empty one has one."""
        return len(self._starts)

    def line_column(self, offset: int) -> tuple[int, int]:
        """The line and column of a character offset; the end of the text is a place too."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line_start(self, line: int) -> int:
        """The offset at which a line begins."""
        return self._starts[line - 1]

    def line(self, line: int) -> str:
        """The text of a line, without its line ending."""
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return self.text[self._starts[line - 1] : end].rstrip("\r\n")

    def slice(self, span: Span) -> str:
        """The text of a span."""
        return self.text[span.start : span.end]


CODES: dict[str, tuple[str, str]] = {}
"""Code -> title and page. Filled by `register`, when the module that reports a code is imported."""


def register(codes: Mapping[str, tuple[str, str]]) -> None:
    """Adds codes with their title and page. One code has one meaning: another one for it is a bug. Raises ValueError: a
    code is registered already, with another meaning."""
    for code, entry in codes.items():
        if CODES.setdefault(code, entry) != entry:
            raise ValueError(f"`{code}` is registered twice")


def pages_of(text: str) -> dict[str, tuple[str, str]]:
    """Code -> title and page: the title stands on the line of the code, the page below, an empty line between pages."""
    pages = (page.partition("\n") for page in text.rstrip().split("\n\n"))
    return {head[:6]: (head[7:], page) for head, _, page in pages}


def listed(names: Iterable[object]) -> str:
    """Names in a message: "`a`, `b`"."""
    return ", ".join(f"`{name}`" for name in names)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings by file, place, code and message, each once."""
    return sorted(dict.fromkeys(diagnostics), key=lambda d: (d.file, d.span.start, d.span.end, d.code, d.message))


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether any of the findings keeps the policy from being loaded."""
    return any(d.severity is Severity.ERROR for d in diagnostics)


# --- on a terminal ---------------------------------------------------------------------------------------

_COLOURS = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m", Severity.INFO: "\x1b[1;36m"}
_BOLD, _BLUE, _RESET = "\x1b[1m", "\x1b[1;34m", "\x1b[0m"


def render(diagnostics: Iterable[Diagnostic], source: Source, color: bool = False) -> str:
    """The findings as text, each with its line and a run of carets below, separated by empty lines."""
    return "\n".join(_render_one(d, source, color) for d in in_order(diagnostics))


def _render_one(diagnostic: Diagnostic, source: Source, color: bool) -> str:
    tint = _COLOURS[diagnostic.severity]
    line, column = source.line_column(diagnostic.span.start)
    spans = [diagnostic.span, *(related.span for related in diagnostic.related)]
    margin = " " * len(str(source.line_column(max(span.end for span in spans))[0]))
    head = f"{_paint(f'{diagnostic.severity.value}[{diagnostic.code}]', tint, color)}: "
    rows = [
        head + _paint(printable(diagnostic.message), _BOLD, color),
        f"{margin}{_paint('-->', _BLUE, color)} {printable(diagnostic.file)}:{line}:{column}",
        f"{margin} {_paint('|', _BLUE, color)}",
        *_marked(diagnostic.span, "", margin, source, tint, color),
    ]
    for related in diagnostic.related:
        rows += _marked(related.span, printable(related.label), margin, source, _BLUE, color, mark="-")
    if diagnostic.fix:
        rows.append(f"{margin} {_paint('=', _BLUE, color)} help: {printable(diagnostic.fix.title)}")
    return "\n".join(rows) + "\n"


def _marked(span: Span, label: str, margin: str, source: Source, tint: str, color: bool, mark: str = "^") -> list[str]:
    """The lines of a span with marks below; of more than four, the first and the last."""
    bar = _paint("|", _BLUE, color)
    first, last = source.line_column(span.start)[0], source.line_column(max(span.start, span.end - 1))[0]
    numbers = list(range(first, last + 1)) if last - first < 4 else [first, last]
    rows: list[str] = []
    for number in numbers:
        if number > first + len(rows) // 2:
            rows.append(_paint("...", _BLUE, color))
        start = source.line_start(number)
        text, marks = excerpt(source.line(number), span.start - start, span.end - start, mark)
        rows.append(f"{_paint(str(number).rjust(len(margin)), _BLUE, color)} {bar} {text}".rstrip())
        rows.append(f"{margin} {bar} {_paint(marks, tint, color)}")
    if label:
        rows[-1] += f" {_paint(label, tint, color)}"
    return rows


def _paint(text: str, colour: str, color: bool) -> str:
    if not color:
        return text
    indent = text[: len(text) - len(text.lstrip())]
    return f"{indent}{colour}{text[len(indent) :]}{_RESET}"


def to_json(diagnostic: Diagnostic, source: Source) -> dict[str, object]:
    """The finding as `lint --format json` writes it; lines and columns from 1, the end is exclusive."""
    found: dict[str, object] = {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "file": diagnostic.file,
        **_place(diagnostic.span, source),
        "message": diagnostic.message,
    }
    if diagnostic.fix:
        edits = [{**_place(edit.span, source), "text": edit.text} for edit in diagnostic.fix.edits]
        found["fix"] = {"message": diagnostic.fix.title, "edits": edits}
    return found


def _place(span: Span, source: Source) -> dict[str, object]:
    line, column = source.line_column(span.start)
    end_line, end_column = source.line_column(span.end)
    return {"line": line, "column": column, "endLine": end_line, "endColumn": end_column}


# --- one line of a source text ----------------------------------------------------------------------------


TAB = 4
WIDTH = 120
"""A longer line is cut to this many columns around the marks."""
_BEFORE = 40
_INVISIBLE = {"Mn", "Me"}
_ACTIVE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str) -> str:
    """The text on one line, with what a terminal would act on, or not show, replaced by `�`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character)[0] for character in text)


def excerpt(line: str, start: int, end: int, mark: str = "^") -> tuple[str, str]:
    """A line and the marks to put below it, cut around them where the line is long.

    Arguments:
        start, end: character offsets in the line; they may lie outside (a span over several lines). Leading
            white space of a continued line is not marked; an empty or outside range gets one mark.
    """
    if start < 0:
        start = len(line) - len(line.lstrip())
    end = min(max(end, start + 1), max(len(line), start + 1))
    cut_left = max(0, start - _BEFORE) if len(line) > WIDTH else 0
    cut_right = min(len(line), cut_left + WIDTH)
    shown, marks, columns = [], [], 0
    if cut_left:
        shown, marks = ["…"], [" "]
    for at in range(cut_left, max(cut_right, start + 1)):
        text, width = _shown(line[at]) if at < len(line) else (" ", 1)
        columns += width
        shown.append(text)
        marks.append((mark if start <= at < end else " ") * width)
    if cut_right < len(line):
        shown.append("…")
    below = "".join(marks).rstrip()
    return "".join(shown).rstrip(), below or mark


def _shown(character: str) -> tuple[str, int]:
    """What stands for a character on a terminal, and how many columns it takes."""
    if " " <= character <= "~":
        return character, 1
    if character == "\t":
        return " " * TAB, TAB
    category = unicodedata.category(character)
    if category in _ACTIVE:
        return "�", 1
    if category in _INVISIBLE:
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1
