"""Where the checker's findings go, and the fixes that come with them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Edit, Fix, Related, Severity, printable
from policyengine.language.syntax import Span
from policyengine.language.types import ERROR, Type
from policyengine.suggestion import closest

LONGEST_MESSAGE = 400
MOST_COMPARED = 1_000_000
"""Pairs of letters of misspelt and known names that are compared in one file: a fifth of a second."""


class Report(Struct):
    """Collects findings of one file."""

    file: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    types: dict[Span, Type] = field(default_factory=dict)
    """The type of each expression of the file that was checked, by its place: what editors show."""
    _compared: int = 0

    def apart(self) -> Report:
        """Another report of the same file, with findings of its own. What is learnt of types is shared."""
        return Report(self.file, types=self.types)

    def error(
        self, code: str, message: str, span: Span, fix: Fix | None = None, related: tuple[Related, ...] = ()
    ) -> ir.Const:
        """Reports what keeps the policy from loading, and returns what stands for it: its type silences what
        follows."""
        message = printable(message)
        message = message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "…"
        self.diagnostics.append(Diagnostic(code, Severity.ERROR, message, self.file, span, fix, related))
        return error_at(span)

    def unknown(
        self,
        code: str,
        message: str,
        span: Span,
        word: str,
        known: Iterable[str],
        *,
        shown: str = "{}",
        fix: str | None = "{}",
        otherwise: str = "",
    ) -> ir.Const:
        """Reports a word that means nothing here, with the known one that was probably meant.

        Arguments:
            shown, fix: how that one is written in the message, and in the fix; None for no fix.
            otherwise: the end of the message where no known word is near.
        """
        close = self.closest(word, known)
        hint = f"; did you mean `{shown.format(close)}`?" if close else otherwise
        return self.error(code, message + hint, span, replacing(span, fix.format(close)) if close and fix else None)

    def closest(self, word: str, known: Iterable[str]) -> str | None:
        """The known name that was probably meant, None without one; after many guesses none is made, and `known` is not
        even listed."""
        if self._compared > MOST_COMPARED:
            return None
        names = list(known)
        self._compared += len(word) * sum(map(len, names))
        return closest(word, names) if self._compared <= MOST_COMPARED else None


def error_at(span: Span) -> ir.Const:
    """What stands for an expression that was reported."""
    return ir.Const(type=ERROR, span=span, value=None)


def replacing(span: Span, text: str, safe: bool = False) -> Fix:
    """A fix that writes something else in a place; `safe` where it cannot but be meant: `lint --fix` applies it."""
    return Fix(f"write `{text}`", (Edit(span, text),), safe)


def wrapped(span: Span, before: str, after: str) -> Fix:
    """A fix that writes something around a place."""
    edits = (Edit(Span(span.start, span.start), before), Edit(Span(span.end, span.end), after))
    return Fix(f"write `{before}…{after}`", edits)
