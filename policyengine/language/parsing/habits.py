"""Where a parse stopped, and what people bring along from other languages: words for operators, `if … then`, `60%`,
lists in `(…)`.

Each cause is asked where a parse stopped, and answers with what is written here instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from msgspec import Struct

from policyengine.language.diagnostics import Diagnostic, Edit, Fix, Related
from policyengine.language.parsing.grammar import (
    BEGINNINGS,
    CLOSING,
    OPENING,
    RESERVED,
    keyword_terminals,
    word_terminals,
)
from policyengine.language.parsing.tokens import Token
from policyengine.language.syntax import Span
from policyengine.language.syntax_codes import quoted, syntax_error

_WORD_OPERATORS = {"and": "&&", "or": "||", "is": "==", "eq": "==", "ne": "!=", "mod": "%"}
_CALLED = {
    "contains": "contains", "includes": "contains", "like": "contains", "matches": "matches", "regexp": "matches",
    "startswith": "startsWith", "starts_with": "startsWith", "endswith": "endsWith", "ends_with": "endsWith",
}  # fmt: skip
"""What stands between two values elsewhere, in small letters, and is called here."""
_ABSENT = "a policy has no null; whether something is there is asked by `has(…)` or `.hasValue()`"
_BRANCHES = frozenset({"if", "case", "unless"})
_ORDERS = {"descending": "desc", "decreasing": "desc", "reversed": "desc", "ascending": "asc", "increasing": "asc"}
_LOOP = "there is no `for`; a list is asked by `.exists(x, …)` and `.all(x, …)`, and made by `.filter` and `.map`"
_DOUBLED = {
    "QMARK": "there is no `??`; what may be absent has its default by `.orValue(…)`",
    "STAR": "there is no `**`; write `pow(a, b)`",
}
MEMBERS_ELSEWHERE = {
    "schedulername": "scheduler", "plugin": "use", "plugins": "use", "pluginconfig": "use", "enable": "use",
    "var": "let", "const": "let", "local": "let", "set": "let", "def": "function", "func": "function", "fn": "function",
    "predicate": "filter", "constraint": "filter", "rule": "filter", "deny": "filter", "allow": "filter",
    "require": "filter", "priority": "score", "prefer": "score", "rank": "score", "prioritize": "score",
    "podgroup": "gang", "resourcequota": "quota", "annotate": "bind", "sort": "queue", "order": "queue",
}  # fmt: skip
"""What begins such a member elsewhere, in small letters -> its keyword here."""
WORDS_ELSEWHERE = {
    "assert": "expect", "should": "expect", "pending": "waits", "not": "rejected", "denied": "rejected", "if": "when",
    "where": "when", "message": "else", "because": "else", "pods": "pod", "nodes": "node", "extends": "on",
}  # fmt: skip
"""Words of clauses and steps, as `MEMBERS_ELSEWHERE`."""
_ENDS_VALUE = frozenset({"AND", "OR", "QMARK", "COLON", "COMMA", "ON_ERROR", "$END", "LBRACE", *OPENING})


class Stop(Struct, frozen=True):
    """Where a parse stopped: the start rule, the tokens, which of them, and what would have fitted."""

    rule: str
    tokens: Sequence[Token]
    index: int
    expected: frozenset[str]
    file: str

    @property
    def token(self) -> Token:
        """What fits nothing."""
        return self.tokens[self.index]

    @property
    def before(self) -> Token:
        """What stands before it; of the first token, itself."""
        return self.tokens[max(0, self.index - 1)]

    @property
    def following(self) -> Token:
        """What stands behind it; of the last token, itself."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    @property
    def wants_operator(self) -> bool:
        """Whether an expression could end or go on here."""
        return "COMPARISON" in self.expected

    def finding(
        self,
        code: str,
        message: str,
        at: Token | Span,
        instead: str | None = None,
        related: tuple[Related, ...] = (),
        safe: bool = False,
    ) -> Diagnostic:
        """A finding at a place; `instead` is what to write in it, `safe` as in `Fix`."""
        fix, span = None, at.span if isinstance(at, Token) else at
        if instead is not None:
            fix = Fix(f"write {quoted(instead)}" if instead else "remove it", (Edit(span, instead),), safe)
        return syntax_error(code, message, self.file, span, fix, related)


def is_word(token: Token) -> bool:
    """Whether it is a name, or a keyword."""
    return token.kind == "NAME" or token.kind in keyword_terminals()


def begins_value(token: Token) -> bool:
    """Whether an expression may begin with it: keywords are names there."""
    return token.kind in BEGINNINGS or (token.kind in keyword_terminals() and token.kind not in RESERVED)


def open_brackets(tokens: Iterable[Token]) -> list[Token]:
    """The brackets that are open behind tokens, the innermost last; what closes another kind counts."""
    opened: list[Token] = []
    for token in tokens:
        if token.kind in CLOSING:
            opened.append(token)
        elif token.kind in OPENING and opened:
            opened.pop()
    return opened


def word_operator(stop: Stop) -> Diagnostic | None:
    """`and`, `or`, `is`, `contains`, `between`, `not in` between two values."""
    token, word = stop.token, stop.token.text.lower()
    if not stop.wants_operator or not is_word(token):
        return None
    if word == "not" and stop.following.kind == "IN":
        return stop.finding("PE0103", "`not in` is no operator; write `!(a in b)`", token)
    if word == "is" and stop.following.text.lower() in ("null", "not", "none"):
        return stop.finding("PE0103", _ABSENT, token)
    if word in _WORD_OPERATORS and token.kind == "NAME":
        sign = _WORD_OPERATORS[word]
        return stop.finding("PE0103", f"{quoted(token.text)} is no operator; write `{sign}`", token, sign)
    if word in _CALLED and begins_value(stop.following):
        return stop.finding("PE0103", f"{quoted(token.text)} is no operator; write `a.{_CALLED[word]}(b)`", token)
    if word == "between" and begins_value(stop.following):
        return stop.finding("PE0103", "`between` is no operator; write `a >= low && a <= high`", token)
    return None


def negation(stop: Stop) -> Diagnostic | None:
    """`not x`: what it would deny elsewhere, a comparison too, is put in brackets."""
    word = stop.before
    if not stop.wants_operator or word.text.lower() != "not" or not begins_value(stop.token):
        return None
    tokens, at, depth, is_compound = stop.tokens, stop.index, 0, False
    while depth or not _ends_value(tokens, at, stop.index):
        kind = tokens[at].kind
        if kind == "$END":
            return stop.finding("PE0103", f"{quoted(word.text)} is a name; write `!`", word)
        depth += (kind in CLOSING) - (kind in OPENING)
        is_compound |= not depth and kind in ("COMPARISON", "IN", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT")
        at += 1
    before, after = ("!(", ")") if is_compound else ("!", "")
    end = tokens[at - 1].end
    edits = [Edit(Span(word.start, stop.token.start), before), *([Edit(Span(end, end), after)] if after else [])]
    shown = f"{before}{'…' if after else ''}{after}"
    message = f"{quoted(word.text)} is a name; write `{shown}`"
    return syntax_error("PE0103", message, stop.file, word.span, Fix(f"write `{shown}`", tuple(edits)))


def _ends_value(tokens: Sequence[Token], at: int, start: int) -> bool:
    """Whether a token outside of brackets is no part of the operand that begins at `start`."""
    token, before = tokens[at], tokens[at - 1]
    if token.kind in _ENDS_VALUE:
        return True
    follows = begins_value(token) and token.kind not in ("LPAR", "LSQB", "DOT", "MINUS", "NOT")
    return at > start and follows and (begins_value(before) or before.kind in OPENING) and before.kind != "DOT"


def branch(stop: Stop) -> Diagnostic | None:
    """`if a then b else c`, `b if a else c`, `case when`."""
    token, before = stop.token, stop.before
    at = None
    if stop.wants_operator and (token.text == "then" or (token.text in _BRANCHES and begins_value(stop.following))):
        at = token
    elif stop.wants_operator and before.text in _BRANCHES and begins_value(token):
        at = before
    elif stop.wants_operator and begins_value(token):
        at = next(
            (one for number, one in enumerate(stop.tokens[: stop.index]) if _is_called(stop.tokens, number)), None
        )
    if at is None:
        return None
    return stop.finding("PE0103", f"there is no {quoted(at.text)}; write `condition ? a : b`", at)


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    """Whether an `if (…)` begins here."""
    return tokens[at].text == "if" and tokens[at + 1].kind == "LPAR" and tokens[max(0, at - 1)].kind != "DOT"


def percentage(stop: Stop) -> Diagnostic | None:
    """`60%`: as a modulo it wants something behind it, and a keyword would be taken for a name."""
    for at in (stop.index - 1, stop.index - 2):
        if at < 1 or (at < stop.index - 1 and not is_word(stop.before)):
            continue
        number, sign = stop.tokens[at - 1], stop.tokens[at]
        if sign.kind == "PERCENT" and number.kind in ("INT", "FLOAT") and number.end == sign.start:
            if not number.text.replace(".", "", 1).isdecimal():
                return None
            share = str((Decimal(number.text) / 100).normalize())
            share = share if "." in share and "E" not in share else f"{float(share)}"
            written, span = quoted(f"{number.text}%"), Span(number.start, sign.end)
            message = f"{written} is no number, `%` gives the rest of a division; a share is written `{share}`"
            return stop.finding("PE0201", message, span, share, safe=True)
    return None


def order(stop: Stop) -> Diagnostic | None:
    """`descending` behind a key."""
    meant = _ORDERS.get(stop.token.text.lower(), "")
    if not meant or word_terminals()[meant] not in stop.expected:
        return None
    message = f"{quoted(stop.token.text)} is no order; write `{meant}`"
    return stop.finding("PE0101", message, stop.token, meant, safe=True)


def sign(stop: Stop) -> Diagnostic | None:
    """`??`, `**`, `a?.b`, and a loop."""
    token = stop.token
    if token.kind == stop.before.kind and token.kind in _DOUBLED and token.start == stop.before.end:
        return stop.finding("PE0105", _DOUBLED[token.kind], stop.before)
    if (token.text == "for" and stop.wants_operator) or (stop.before.text == "for" and begins_value(token)):
        return stop.finding("PE0103", _LOOP, token if token.text == "for" else stop.before)
    if "COLON" in stop.expected:
        for mark, dot in zip(stop.tokens[: stop.index], stop.tokens[1 : stop.index], strict=False):
            if (mark.kind, dot.kind) == ("QMARK", "DOT") and mark.end == dot.start:
                message = "`?.` is written `.?`: it gives an optional"
                return stop.finding("PE0105", message, Span(mark.start, dot.end), ".?", safe=True)
    return None


def list_in_other_brackets(stop: Stop) -> Diagnostic | None:
    """`x in ("a", "b")`, `x in {"a", "b"}`."""
    opened = open_brackets(stop.tokens[: stop.index])
    if stop.token.kind != "COMMA" or not opened or opened[-1].kind not in ("LPAR", "LBRACE"):
        return None
    at = next(number for number, one in enumerate(stop.tokens) if one is opened[-1])
    if not at or stop.tokens[at - 1].kind != "IN":
        return None
    closing = _closing(stop, len(opened))
    fix = None
    if closing is not None:
        fix = Fix("write `[…]`", (Edit(opened[-1].span, "["), Edit(closing.span, "]")), safe=True)
    message = 'a list stands in `[…]`, as in `pod.namespace in ["a", "b"]`'
    return syntax_error("PE0101", message, stop.file, opened[-1].span, fix)


def _closing(stop: Stop, depth: int) -> Token | None:
    """The bracket that closes the innermost of so many open ones."""
    level = depth
    for token in stop.tokens[stop.index :]:
        level += (token.kind in CLOSING) - (token.kind in OPENING)
        if level < depth:
            return token
    return None


def backticks(stop: Stop) -> Diagnostic | None:
    """A text in backticks, which are for names of fields."""
    if stop.token.kind != "QUOTED_NAME":
        return None
    instead = f'"{stop.token.text.strip("`")}"'
    return stop.finding(
        "PE0101", 'backticks are for names of fields behind a `.`; text stands in `"`', stop.token, instead
    )


HABITS = (word_operator, negation, branch, percentage, order, sign, list_in_other_brackets, backticks)
