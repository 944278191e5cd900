"""Text -> tokens, by the grammar's own terminals. Nothing stops it: what is no token is a finding, and mended.

The tokens serve to cut a file into members before these are parsed one by one. A mended token stands for what was
meant (`&` for `&&`, `“a”` for `"a"`), so that one mistake gives one finding and the rest of the member is still
read. Comments are kept aside, for the formatter and for `///` docs.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cache, lru_cache

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.parsing import grammar, mistyped
from policyengine.language.syntax import Span
from policyengine.language.syntax_codes import syntax_error

MAX_TOKENS = 30_000
"""Words, signs and comments of a file: parsed in a second. They are some 3,500 lines of policy."""
MAX_FINDINGS = 100
"""Findings about characters in one file; what is not a policy at all has no more to say after these."""
_MAX_INDENT = 250
"""Further to the right nothing counts as the first of its line: looking back costs time."""
_FILES_KEPT = 8
"""Files whose tokens are kept. Loading one asks three times: to parse it, to look for suppressions, to hash it."""


class Token(Struct, frozen=True, gc=False):
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
    broken: set[int]
    complete: bool = True
    """Whether the whole text was read; if not, a finding says why, and what follows from the rest means little."""

    def docs(self, source: Source, at: int) -> list[Token]:
        """The `///` comments right above an offset, the last first. A blank line in between parts them."""
        found = list[Token]()
        for number in range(bisect_left(self.comments, at, key=lambda one: one.start) - 1, -1, -1):
            comment, line = self.comments[number], _line_of_first(source, at)
            if not line or _line_of_first(source, comment.start) != line - 1 or not comment.text.startswith("///"):
                break
            found.append(comment)
            at = comment.start
        return found


def _line_of_first(source: Source, at: int) -> int:
    """The line on which the offset is the first that is not blank; 0 where something stands before it."""
    line, column = source.line_column(at)
    indented = column <= _MAX_INDENT and not source.text[at - column + 1 : at].strip()
    return line if indented else 0


@lru_cache(maxsize=_FILES_KEPT)
def tokens_of(source: Source) -> Tokens:
    """The tokens of a whole file. They are shared: nobody changes the lists."""
    return tokenise(source.text, source.file)


def tokenise(text: str, file: str, start: int = 0, end: int | None = None) -> Tokens:
    """Cuts a text, or the part from start to end, into tokens; offsets are those of the whole text."""
    end = len(text) if end is None else end
    tokens: list[Token] = []
    comments: list[Token] = []
    findings: list[Diagnostic] = []
    broken: set[int] = set()
    match, words, signs = _pattern().match, grammar.word_terminals(), grammar.sign_terminals()
    complete, at = True, start
    while (found := match(text, at, end)) is not None:
        kind, number = found.lastgroup, found.lastindex
        assert kind is not None and number is not None  # one alternative was taken, and each has a name
        first, at = found.span(number)
        word = text[first:at]
        if kind == "NAME":
            tokens.append(Token(words.get(word, "NAME"), word, first, at))
        elif kind == "SIGN":
            tokens.append(Token(signs[word], word, first, at))
        elif kind == "COMMENT":
            comments.append(Token("COMMENT", word, first, at))
        elif kind in mistyped.MENDED:
            mended = mistyped.mend(kind, word, text, file, first, min(at, end), end)
            findings.append(mended.finding)
            if mended.kind:
                tokens.append(Token(mended.kind, mended.text, first, mended.end))
            if mended.kind == "UNREADABLE" or kind == "OPEN_STRING":
                broken.add(first)
            at = mended.end
        else:
            tokens.append(Token(kind, word, first, at))
        if len(tokens) + len(comments) > MAX_TOKENS or len(findings) >= MAX_FINDINGS:
            complete = False
            if len(findings) < MAX_FINDINGS:
                message = f"the text has more than {MAX_TOKENS:,} words, signs and comments; split the file"
                findings.append(syntax_error("PE0402", message, file, Span(at, at)))
            break
    tokens.append(Token("$END", "", end, end))
    return Tokens(tokens, comments, findings, broken, complete)


@cache
def _pattern() -> re.Pattern[str]:
    """All terminals as one pattern, behind white space; of two that match, the one further in front is meant."""
    patterns = dict(grammar.patterns())
    # White space is passed over for good: given back, it would be a strange character.
    white = f"(?:{patterns.pop('WHITESPACE')})?+"
    order = ["COMMENT", "ON_ERROR", "STRING", "BYTES", "NAME"]
    order += [name for name in patterns if name not in order]
    order.insert(order.index("COMPARISON"), "ODD_SIGN")
    signs = sorted(grammar.sign_terminals(), key=lambda sign: (-len(sign), sign))  # `<=` before `<`
    patterns |= {"ODD_SIGN": mistyped.ODD_SIGN, "SIGN": "|".join(map(re.escape, signs))}
    alternatives = [*((name, patterns[name]) for name in [*order, "SIGN"]), *mistyped.UNREADABLE]
    return re.compile(f"{white}(?:{'|'.join(f'(?P<{name}>{pattern})' for name, pattern in alternatives)})")


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
    broken = {places[start] for start in cut.broken}
    return Tokens([move(t) for t in cut.tokens], [move(c) for c in cut.comments], findings, broken, cut.complete)
