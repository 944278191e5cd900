"""Text -> tokens, by the grammar's own terminals. Nothing stops it: what is no token is a finding, and mended.

A mended token stands for what was meant (`&` for `&&`, `“a”` for `"a"`), so that one mistake gives one finding
and the rest of the member is still read. Comments are kept aside, for the formatter and for `///` docs.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import accumulate, chain

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language.diagnostics import Diagnostic, Source
from policyengine.language.parsing import grammar
from policyengine.language.parsing import mistyped as lexical
from policyengine.language.syntax import Span

MAX_TOKENS = 30_000
"""Words, signs and comments of a file: parsed in half a second. They are some 3,500 lines of policy."""
MAX_FINDINGS = 100
"""Findings about characters in one file; what is not a policy at all has no more to say after these."""
_AT_ONCE = 1 << 18
"""Characters that are cut at once, some 5,000 lines; longer texts go token by token, and no further than is allowed."""
_FILES_KEPT = 8
"""Files whose tokens are kept. Loading one asks three times: to parse it, to look for suppressions, to hash it."""
_LONGEST_KEPT = 64
"""Longer words are looked at again each time."""


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
    broken: frozenset[int]
    complete: bool = True
    """Whether the whole text was read; if not, a finding says why, and what follows from the rest means little."""


@lru_cache(maxsize=_FILES_KEPT)
def tokens_of(source: Source) -> Tokens:
    """The tokens of a whole file. They are shared: nobody changes the lists."""
    return tokenise(source.text, source.file)


def tokenise(text: str, file: str, start: int = 0, end: int | None = None) -> Tokens:
    """Cuts a text, or the part from start to end, into tokens; offsets are those of the whole text."""
    limit = len(text) if end is None else end
    return _at_once(text, start, limit) or one_by_one(text, file, start, limit)


def one_by_one(text: str, file: str, start: int, end: int) -> Tokens:
    """The tokens of any text from start to end, with what is no token mended."""
    scanner = _Scanner(text, file, end)
    scanner.run(start)
    broken = frozenset(scanner.broken)
    return Tokens(scanner.tokens, scanner.comments, scanner.findings, broken, scanner.complete)


# --- a text without a mistake: cut without a step of Python a token ----------------------------------------


def _at_once(text: str, start: int, end: int) -> Tokens | None:
    """The tokens of a part in which all is readable and not too much; None for another."""
    if end - start > _AT_ONCE:
        return None
    pairs = _pairs().findall(text, start, end)
    if len(pairs) > 1 and not pairs[-2][1]:  # the end is found behind white space, and found once more
        pairs.pop()
    if len(pairs) > MAX_TOKENS:
        return None
    words = [word for _, word in pairs]
    kind_of = _Kinds(_known())
    kinds = [kind_of[word] for word in words]
    if not lexical.MENDED.isdisjoint(kind_of.values()):
        return None
    ends = list(accumulate(map(len, chain.from_iterable(pairs)), initial=start))
    tokens = list(map(Token, kinds, words, ends[1::2], ends[2::2]))
    comments = [token for token in tokens if token.kind == "COMMENT"] if "COMMENT" in kind_of.values() else []
    if comments:
        tokens = [token for token in tokens if token.kind != "COMMENT"]
    return Tokens(tokens, comments, [], frozenset())


class _Kinds(dict[str, str]):
    """Words and signs of one text to their terminals. What a word is follows from its letters alone."""

    def __missing__(self, word: str) -> str:
        kind = self[word] = _kind(word) if len(word) <= _LONGEST_KEPT else _kind.__wrapped__(word)
        return kind


@cache
def _known() -> dict[str, str]:
    return {**grammar.table().words, **grammar.table().signs, "": "$END"}


@lru_cache(maxsize=4096)
def _kind(word: str) -> str:
    found = _pattern().match(word)
    assert found is not None and found.lastgroup is not None  # the last alternatives take any character
    return found.lastgroup


# --- any text ----------------------------------------------------------------------------------------------


@cache
def _pairs() -> re.Pattern[str]:
    """White space, and what stands behind it: what `_pattern` finds, the end, or, from what has to be mended, the rest.

    Something fits everywhere, and nothing behind a mistake is looked at: no text is searched twice.
    """
    rest = r"[\s\S]*"
    found = [pattern + rest * (name in lexical.MENDED) for name, pattern in _alternatives()]
    return re.compile(rf"({_white()})?+({'|'.join(found)}|\Z)")


@cache
def _pattern() -> re.Pattern[str]:
    """All terminals as one pattern, behind white space; of two that match, the one further in front is meant."""
    # White space is passed over for good: given back, it would be a strange character.
    return re.compile(f"(?:{_white()})?+(?:{'|'.join(f'(?P<{name}>{pattern})' for name, pattern in _alternatives())})")


def _white() -> str:
    return dict(grammar.table().patterns)["WHITESPACE"]


def _alternatives() -> list[tuple[str, str]]:
    table = grammar.table()
    patterns = dict(table.patterns)
    order = ["COMMENT", "ON_ERROR", "STRING", "BYTES", "NAME"]
    order += [name for name in patterns if name not in (*order, "WHITESPACE")]
    order.insert(order.index("COMPARISON"), "ODD_SIGN")
    patterns |= {"ODD_SIGN": lexical.ODD_SIGN, "SIGN": lexical.signs(table.signs)}
    return [(name, f"(?:{patterns[name]})") for name in [*order, "SIGN"]] + [
        (name, f"(?:{pattern})") for name, pattern in lexical.UNREADABLE
    ]


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
        append, name_of, whole = tokens.append, words.get, self.text
        while (found := match(whole, at, self.end)) is not None:
            kind, number = found.lastgroup, found.lastindex
            assert kind is not None and number is not None  # one alternative was taken, and each has a name
            start, at = found.span(number)
            text = whole[start:at]
            if kind == "NAME":
                append(Token(name_of(text, "NAME"), text, start, at))
            elif kind == "SIGN":
                append(Token(signs[text], text, start, at))
            elif kind == "COMMENT":
                self.comments.append(Token("COMMENT", text, start, at))
                limit -= 1
            elif kind in lexical.MENDED:
                at = self.mend(kind, text, start, at)
            else:
                append(Token(kind, text, start, at))
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
