"""The message about a token that fits nothing: what was found, what was expected, and how to put it right.

The mistakes people make are looked for one by one, the likeliest cause first; what is left is described in the
language's own terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from policyengine.language.diagnostics import Diagnostic, Edit, Fix, Related
from policyengine.language.parsing.grammar import (
    BEGINNINGS,
    CLOSING,
    OPENING,
    OPERATORS,
    RESERVED,
    keyword_terminals,
    sign_terminals,
    word_terminals,
)
from policyengine.language.parsing.tokens import Token
from policyengine.language.suggestion import closest
from policyengine.language.syntax import Span
from policyengine.language.syntax_codes import quoted, syntax_error

_NUMBERS = frozenset({"INT", "FLOAT"})
_WORD_OPERATORS = {"and": "&&", "or": "||", "is": "==", "eq": "==", "ne": "!=", "mod": "%"}
_QUANTITY_SUFFIXES = frozenset({"m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"})
_SUFFIXES = _QUANTITY_SUFFIXES | {"ms", "s", "min", "h", "d"}
_RULES = frozenset({"filter", "score", "gang", "quota", "permit", "test"})
_NAMED = _RULES | {"scheduler", "library", "policy", "overlay", "import"}


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
        self, code: str, message: str, at: Token, instead: str | None = None, related: tuple[Related, ...] = ()
    ) -> Diagnostic:
        """A finding at a token; `instead` is what to write in its place."""
        fix = None
        if instead is not None:
            fix = Fix(f"write {quoted(instead)}" if instead else "remove it", (Edit(at.span, instead),))
        return syntax_error(code, message, self.file, at.span, fix, related)


def explain(rule: str, tokens: Sequence[Token], index: int, expected: frozenset[str], file: str) -> Diagnostic:
    """The finding about the token at the index, where the rule would have taken what is expected."""
    stop = Stop(rule, tokens, index, expected, file)
    for cause in _CAUSES:
        if found := cause(stop):
            return found
    return _anything(stop)


# --- one mistake each ------------------------------------------------------------------------------------


def _bracket(stop: Stop) -> Diagnostic | None:
    """A bracket left open, closed by another kind, or closed without being open."""
    kind, opened = stop.token.kind, _open_brackets(stop.tokens[: stop.index])
    if kind == "$END" and opened:
        last = opened[-1]
        return stop.finding("PE0106", f"`{last.text}` is never closed by `{CLOSING[last.kind]}`", last)
    if kind not in OPENING or (opened and opened[-1].kind == OPENING[kind]):
        return None
    if not opened:
        return stop.finding("PE0107", f"`{stop.token.text}` closes nothing", stop.token, "")
    last = opened[-1]
    message = f"`{last.text}` is closed by `{stop.token.text}`; write `{CLOSING[last.kind]}`"
    return stop.finding("PE0106", message, stop.token, None, (Related(last.span, "opened here"),))


def _open_brackets(tokens: Iterable[Token]) -> list[Token]:
    opened: list[Token] = []
    for token in tokens:
        if token.kind in CLOSING:
            opened.append(token)
        elif token.kind in OPENING and opened:
            opened.pop()
    return opened


def _assignment(stop: Stop) -> Diagnostic | None:
    """`=` where values are compared, or where a field has its `:`."""
    if stop.token.kind != "EQUAL":
        return None
    if stop.expected == {"COLON"} and stop.rule == "param":
        return stop.finding("PE0101", "a param needs its type before `=`, as in `param limit: int = 5`", stop.token)
    if "COLON" in stop.expected and not stop.wants_operator:
        return stop.finding("PE0101", "a field's value stands behind `:`, not `=`", stop.token, ":")
    if not stop.wants_operator:
        return None
    at = stop.token
    if stop.rule == "score":
        at = next(token for token in stop.tokens if token.kind == "EQUAL")
    return stop.finding("PE0102", "`=` does not compare; write `==`", at, "==")


def _word_operator(stop: Stop) -> Diagnostic | None:
    """`and`, `or`, `not`, `is`, `if … then`."""
    token, before = stop.token, stop.before
    word = token.text.lower()
    if stop.wants_operator and word == "not" and stop.following.kind == "IN":
        return stop.finding("PE0103", "`not in` is no operator; write `!(a in b)`", token)
    if stop.wants_operator and before.text.lower() == "not" and token.kind in BEGINNINGS:
        return stop.finding("PE0103", f"{quoted(before.text)} is a name; write `!`", before, "!")
    if stop.wants_operator and before.text == "if" and token.kind in BEGINNINGS:
        return stop.finding("PE0103", "there is no `if`; write `condition ? a : b`", before)
    if stop.wants_operator and word in _WORD_OPERATORS and token.kind == "NAME":
        sign = _WORD_OPERATORS[word]
        return stop.finding("PE0103", f"{quoted(token.text)} is no operator; write `{sign}`", token, sign)
    return None


def _message_literal(stop: Stop) -> Diagnostic | None:
    """`Type{field: value}`."""
    after = stop.tokens[stop.index + 1 : stop.index + 3]
    looks_so = stop.token.kind == "LBRACE" and stop.before.kind == "NAME" and stop.wants_operator
    if looks_so and len(after) == 2 and (after[0].kind == "RBRACE" or after[1].kind == "COLON"):
        message = 'there are no message literals; a map is written `{"key": value}`'
        return stop.finding("PE0111", message, stop.token)
    return None


def _number(stop: Stop) -> Diagnostic | None:
    """A suffix apart from its number, or a number that ends in a dot."""
    token, before = stop.token, stop.before
    if before.kind in _NUMBERS and token.text in _SUFFIXES and stop.wants_operator:
        glued = before.text + token.text
        span = Span(before.start, token.end)
        fix = Fix(f"write `{glued}`", (Edit(span, glued),))
        message = f"a suffix stands right behind its number: {quoted(glued)}"
        return syntax_error("PE0201", message, stop.file, span, fix)
    if before.kind == "DOT" and stop.index > 1 and stop.tokens[stop.index - 2].kind == "INT":
        number = stop.tokens[stop.index - 2]
        if number.end == before.start:
            return stop.finding("PE0201", f"a number does not end in a dot; write {quoted(number.text + '.0')}", before)
    return None


def _quotes(stop: Stop) -> Diagnostic | None:
    """A rule's name without quotes or behind a colon, or a let's name in quotes."""
    token = stop.token
    if stop.expected == {"STRING"} and _is_word(token) and stop.index == 1 and stop.rule in _NAMED:
        article = "an" if stop.rule[0] in "aeiou" else "a"
        message = f"the name of {article} {stop.rule} stands in quotes"
        return stop.finding("PE0101", message, token, f'"{token.text}"')
    if stop.expected == {"STRING"} and token.kind == "COLON" and stop.index == 1:
        return stop.finding("PE0101", f"no `:` stands behind `{stop.rule}`", token, "")
    bare = stop.expected == {"NAME"} and token.kind == "STRING" and stop.index == 1
    inside = token.text[1:-1]
    if bare and inside.isidentifier() and inside.isascii():
        return stop.finding("PE0101", f"the name of a {stop.rule} stands without quotes", token, inside)
    return None


def _clauses(stop: Stop) -> Diagnostic | None:
    """What a member needs and has not, or has in another order."""
    kind = stop.token.kind
    if stop.rule == "score" and stop.index == 2:
        order = "`weight`, `when`, `normalize`, `=`"
        if kind in ("WHEN", "NORMALIZE"):
            return stop.finding("PE0101", f"the clauses of a score stand in this order: {order}", stop.token)
        if kind == "EQUAL" or kind == "$END":
            return stop.finding("PE0101", "a score needs a weight before `=`, as in `weight 1`", stop.token)
    if stop.rule == "let" and kind == "COLON" and stop.index == 2:
        return stop.finding("PE0101", "a let has no type of its own; write `=`", stop.token)
    if stop.rule == "quota" and kind == "LBRACE" and stop.index == 2:
        return stop.finding("PE0101", "a quota needs `when` to say which pods it is for", stop.token)
    if "REQUIRE" in stop.expected and stop.rule == "filter" and kind in BEGINNINGS and not stop.wants_operator:
        return stop.finding("PE0101", f"found {_shown(stop)}, expected `require` before a condition", stop.token)
    return None


def _misspelt(stop: Stop) -> Diagnostic | None:
    """A word that is nearly one of those expected."""
    if not _is_word(stop.token) or stop.token.kind in RESERVED:
        return None
    words = {text for text, kind in word_terminals().items() if kind in stop.expected and kind not in RESERVED}
    if "NAME" in stop.expected or not (near := closest(stop.token.text, words)):
        return None
    message = f"found {_shown(stop)}, expected {_expectations(stop)}; did you mean `{near}`?"
    return stop.finding("PE0101", message, stop.token, near)


def _missing_comma(stop: Stop) -> Diagnostic | None:
    """Two values side by side in brackets."""
    if stop.wants_operator and "COMMA" in stop.expected and stop.token.kind in BEGINNINGS:
        opened = _open_brackets(stop.tokens[: stop.index])
        if opened:
            span = Span(stop.before.end, stop.before.end)
            fix = Fix("insert `,`", (Edit(span, ","),))
            message = f"found {_shown(stop)} right behind {_named(stop.before)}; is a `,` or an operator missing?"
            return syntax_error("PE0101", message, stop.file, stop.token.span, fix)
    return None


_CAUSES: tuple[Callable[[Stop], Diagnostic | None], ...] = (
    _bracket,
    _assignment,
    _word_operator,
    _message_literal,
    _number,
    _quotes,
    _misspelt,
    _clauses,
    _missing_comma,
)


# --- anything else ---------------------------------------------------------------------------------------


def _anything(stop: Stop) -> Diagnostic:
    span = stop.token.span
    if stop.token.kind == "$END":
        span = Span(stop.before.start, stop.before.end) if stop.index else span
    message = f"found {_shown(stop)}, expected {_expectations(stop)}"
    return syntax_error("PE0101", message, stop.file, span)


def _shown(stop: Stop) -> str:
    if stop.token.kind == "$END":
        what = "expression" if stop.rule == "expression" else stop.rule
        return f"the end of the {what} behind {_named(stop.before)}" if stop.index else "nothing"
    return _named(stop.token)


def _named(token: Token) -> str:
    return f"the string {quoted(token.text)}" if token.kind == "STRING" else quoted(token.text)


def _is_word(token: Token) -> bool:
    return token.kind == "NAME" or token.kind in keyword_terminals()


def _expectations(stop: Stop) -> str:
    """What would have fitted, in a few words: groups first, then keywords and signs."""
    left, found = set(stop.expected), []
    if "INT" in left:
        found.append("an expression")
        left -= BEGINNINGS
    if "COMPARISON" in left:
        found.append("an operator")
        left -= OPERATORS
    for kind, shown in (("NAME", "a name"), ("STRING", "a string in quotes"), ("ON_ERROR", "`on error`")):
        if kind in left:
            found.append(shown)
    ends = "$END" in left
    texts = {kind: text for text, kind in [*word_terminals().items(), *sign_terminals().items()]}
    found += sorted(f"`{texts[kind]}`" for kind in left if kind in texts)
    if ends:
        found.append("nothing more" if stop.rule == "expression" else "the next member")
    return " or ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)
