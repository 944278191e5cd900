"""Text -> tokens, by the grammar's own terminals. Nothing stops it: what is no token is a finding, and mended.

A mended token stands for what was meant (`&` for `&&`, `“a”` for `"a"`), so that one mistake gives one finding
and the rest of the member is still read. Comments are kept aside, for the formatter and for `///` docs.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language.diagnostics import Diagnostic
from policyengine.language.parsing import grammar, lexical
from policyengine.language.syntax import Span

MAX_TOKENS = 30_000
"""Words, signs and comments of a file: parsed in half a second. They are some 3,500 lines of policy."""
MAX_FINDINGS = 100
"""Findings about characters in one file; what is not a policy at all has no more to say after these."""


class Token(NamedTuple):
    """A word, number, string or sign. `kind` is the terminal; a keyword's may turn out to be a name."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.start, self.end)


class Tokens(Struct, frozen=True):
    """A text cut into tokens, with its comments and what could not be read.

    The last token is an `$END` of no width. `broken` are the starts of tokens that stand for something
    unreadable: a parse that stops there repeats what a finding says already.
    """

    tokens: list[Token]
    comments: list[Token]
    findings: list[Diagnostic]
    broken: frozenset[int]
    complete: bool = True
    """Whether the whole text was read; if not, a finding says why, and what follows from the rest means little."""


def tokenise(text: str, file: str, start: int = 0, end: int | None = None) -> Tokens:
    """Cuts a text, or the part from start to end, into tokens; offsets are those of the whole text."""
    scanner = _Scanner(text, file, len(text) if end is None else end)
    scanner.run(start)
    broken = frozenset(scanner.broken)
    return Tokens(scanner.tokens, scanner.comments, scanner.findings, broken, scanner.complete)


@cache
def _pattern() -> re.Pattern[str]:
    """All terminals as one pattern, behind white space; of two that match, the one further in front is meant."""
    table = grammar.table()
    patterns = dict(table.patterns)
    order = ["COMMENT", "ON_ERROR", "STRING", "BYTES", "NAME"]
    order += [name for name in patterns if name not in (*order, "WHITESPACE")]
    order.insert(order.index("COMPARISON"), "ODD_SIGN")
    patterns |= {"ODD_SIGN": lexical.ODD_SIGN, "SIGN": lexical.signs(table.signs)}
    parts = [f"(?P<{name}>{patterns[name]})" for name in [*order, "SIGN"]]
    parts += [f"(?P<{name}>{pattern})" for name, pattern in lexical.UNREADABLE]
    # White space is passed over for good: given back, it would be a strange character.
    return re.compile(f"(?:{patterns['WHITESPACE']})?+(?:{'|'.join(parts)})")


class _Scanner:
    """One pass over a text."""

    def __init__(self, text: str, file: str, end: int) -> None:
        self.text, self.file, self.end = text, file, end
        self.tokens: list[Token] = []
        self.comments: list[Token] = []
        self.findings: list[Diagnostic] = []
        self.broken: set[int] = set()
        self.complete = True

    def run(self, at: int) -> None:
        match, words, signs = _pattern().match, grammar.table().words, grammar.table().signs
        tokens, limit = self.tokens, MAX_TOKENS
        append, new, name_of, whole = tokens.append, Token._make, words.get, self.text
        while (found := match(whole, at, self.end)) is not None:
            kind, number = found.lastgroup, found.lastindex
            assert kind is not None and number is not None  # one alternative was taken, and each has a name
            start, at = found.span(number)
            text = whole[start:at]
            if kind == "NAME":
                append(new((name_of(text, "NAME"), text, start, at)))
            elif kind == "SIGN":
                append(new((signs[text], text, start, at)))
            elif kind == "COMMENT":
                self.comments.append(new(("COMMENT", text, start, at)))
                limit -= 1
            elif kind in lexical.MENDED:
                at = self.mend(kind, text, start, at)
            else:
                append(new((kind, text, start, at)))
            if len(tokens) > limit or len(self.findings) >= MAX_FINDINGS:
                self.give_up(at)
                break
        append(Token("$END", "", self.end, self.end))

    def mend(self, kind: str, text: str, start: int, end: int) -> int:
        """Reports what is no token, puts what was meant in its place, and returns where to go on."""
        mended = lexical.mend(kind, text, self.text, self.file, start, min(end, self.end), self.end)
        self.findings.append(mended.finding)
        if mended.kind:
            self.tokens.append(Token(mended.kind, mended.text, start, mended.end))
        if mended.kind == "UNREADABLE" or kind == "OPEN_STRING":
            self.broken.add(start)
        return mended.end

    def give_up(self, at: int) -> None:
        self.complete = False
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(lexical.too_many_tokens(MAX_TOKENS, self.file, Span(at, at)))


def relocated(cut: Tokens, places: list[int]) -> Tokens:
    """The same tokens and findings elsewhere: `places` has a new offset for every old one.

    Fixes are left out: what they would insert may need escapes at the new place.
    """

    def move(token: Token) -> Token:
        return Token(token.kind, token.text, places[token.start], places[token.end])

    findings = [
        replace(finding, span=Span(places[finding.span.start], places[finding.span.end]), fix=None, related=())
        for finding in cut.findings
    ]
    broken = frozenset(places[start] for start in cut.broken)
    return Tokens([move(t) for t in cut.tokens], [move(c) for c in cut.comments], findings, broken, cut.complete)
