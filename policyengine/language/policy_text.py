"""One policy text, and the way from its offsets to those of the file or manifest that holds it."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from policyengine.language.diagnostics import Diagnostic, Edit, Source
from policyengine.language.syntax import Span


@dataclass(frozen=True, slots=True)
class PolicyText:
    """One policy text, and where it stands: `shown` is the file as the user sees it.

    The name of `source` is that of no other text: of one in a manifest, the key's too.
    """

    source: Source
    shown: Source
    starts: tuple[int, ...] = ()
    """Where each line of the text begins in `shown`; empty where the text is the file."""
    folded: bool = False
    """The lines do not stand in the manifest one by one: everything points at the text's beginning."""
    holder: int = 0
    """Where in `shown` the object begins that holds the text: those of one are loaded together."""
    params: PolicyText | None = None
    """The values of params of that object, as YAML."""

    def placed(self, diagnostic: Diagnostic) -> Diagnostic:
        """The finding at its place in the file."""
        if not self.starts:
            return diagnostic
        fix = diagnostic.fix
        if fix is not None:
            edits = tuple(Edit(self.shown_span(edit.span), edit.text) for edit in fix.edits)
            fix = None if self.folded else replace(fix, edits=edits)
        related, steps = (
            tuple(replace(one, span=self.shown_span(one.span)) for one in places)
            for places in (diagnostic.related, diagnostic.steps)
        )
        shown = self.shown_span(diagnostic.span)
        return replace(diagnostic, file=self.shown.file, span=shown, fix=fix, related=related, steps=steps)

    def shown_span(self, span: Span) -> Span:
        """A place of the text in the file."""
        return Span(self._offset(span.start), self._offset(span.end))

    def _offset(self, offset: int) -> int:
        if self.folded:
            return self.starts[0]
        line, column = self.source.line_column(offset)
        return self.starts[min(line, len(self.starts)) - 1] + column - 1
