"""The files an editor holds: the policy texts in them, their places as LSP counts them, and what reads them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types as lsp
from lsprotocol.types import Position, Range

from policyengine.language.checking.plugin_checks import Plugins
from policyengine.language.diagnostics import Diagnostic, Severity, Source
from policyengine.language.lint.lint_settings import Settings
from policyengine.language.parse import SourceError
from policyengine.language.policy_text import PolicyText
from policyengine.language.syntax import Span

_LINE_END = re.compile(r"\r\n|\r|\n")
_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The parts of the toolchain that know files and packages."""

    plugins: Plugins
    """Every plugin that a policy may name."""
    texts_in: Callable[[str, str], Sequence[PolicyText | SourceError]]
    """The policy texts of a file: of its path and what stands in it. Raises SourceError for what is no plain YAML."""
    settings_for: Callable[[Path], Settings]
    """Lint's settings in a folder. Raises SettingsError."""
    pages: Callable[[], Mapping[str, tuple[str, str]]]
    """The code of every finding -> its title and its page."""


class Lines:
    """The lines of a text, to convert character offsets and LSP positions.

    A position counts lines and columns from 0, columns in UTF-16 code units. LSP ends a line with `\\n`, `\\r\\n` or
    `\\r`; a position behind the end of its line means that end. In `x = "😀"`, offset 6 is column 7.
    """

    def __init__(self, text: str) -> None:
        ends = list(_LINE_END.finditer(text))
        self._text = text
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]

    def position(self, offset: int) -> Position:
        """Where an offset is; one outside of the text means its nearest end."""
        offset = max(0, min(offset, len(self._text)))
        line = bisect_right(self._starts, offset) - 1
        return Position(line, self._units(self._starts[line], offset))

    def offset(self, position: Position) -> int:
        """The offset of a position; inside of a surrogate pair, the character's."""
        if position.line >= len(self._starts):
            return len(self._text)
        start, end = self._starts[position.line], self._ends[position.line]
        behind = range(start + 1, end + 1)
        return start + bisect_right(behind, position.character, key=lambda at: self._units(start, at))

    def _units(self, start: int, end: int) -> int:
        return len(self._text[start:end].encode("utf-16-le", "surrogatepass")) // 2

    def range(self, span: Span) -> Range:
        """The range of a span."""
        return Range(self.position(span.start), self.position(span.end))


@dataclass(frozen=True, slots=True)
class Document:
    """An open file. `problem`: why no policy can be read in it, '' where nothing is wrong."""

    uri: str
    version: int
    shown: Source
    lines: Lines
    texts: tuple[PolicyText, ...]
    problem: str = ""

    def text_at(self, offset: int) -> tuple[PolicyText, int] | None:
        """The policy text a place of the file belongs to, and where in it that is."""
        found = ((text, _inner(text, offset)) for text in self.texts)
        return next(((text, inner) for text, inner in found if inner is not None), None)

    def published(self, finding: Diagnostic) -> lsp.Diagnostic:
        """A finding at its place in the file, as an editor shows it."""
        related = [
            lsp.DiagnosticRelatedInformation(lsp.Location(self.uri, self.lines.range(one.span)), one.label)
            for one in finding.related
        ]
        return lsp.Diagnostic(
            range=self.lines.range(finding.span),
            message=finding.message + (f"\nhelp: {finding.fix.title}" if finding.fix is not None else ""),
            severity=_SEVERITIES[finding.severity],
            code=finding.code or None,
            source="policyengine",
            related_information=related or None,
        )


def _inner(text: PolicyText, offset: int) -> int | None:
    """The text's offset for one of the file; in the indentation of a line, the end of the line before."""
    if not text.starts:
        return offset
    if text.folded or offset < text.starts[0]:
        return None
    line = bisect_right(text.starts, offset) - 1
    column, length = offset - text.starts[line], len(text.source.line(line + 1))
    if column > length and line + 1 == len(text.starts):
        return None
    return text.source.line_start(line + 1) + min(column, length)
