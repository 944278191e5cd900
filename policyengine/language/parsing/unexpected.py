"""The message about a token that fits nothing: what was found, what was expected, and how to put it right.

The mistakes people make are looked for one by one, the likeliest cause first; what is left is described in the
language's own terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from policyengine.language.parsing.habits import (
    HABITS,
    WORDS_ELSEWHERE,
    Stop,
    begins_value,
    is_word,
    open_brackets,
)
from policyengine.language.parsing.tokens import Token
from policyengine.language.syntax import Span
from policyengine.language.syntax_codes import quoted, syntax_error
from policyengine.suggestion import closest

_NUMBERS = frozenset({"INT", "FLOAT"})
_QUANTITY_SUFFIXES = frozenset({"m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"})
_SUFFIXES = _QUANTITY_SUFFIXES | {"ms", "s", "min", "h", "d"}
_CLAUSES = frozenset({"ELSE", "REQUIRE", "WHEN", "ON_ERROR"})
"""Keywords that no expression in brackets has behind a value."""
_RULES = frozenset({"filter", "score", "gang", "quota", "permit", "test"})
_NAMED = _RULES | {"scheduler", "library", "policy", "overlay", "import"}


def explain(rule: str, tokens: Sequence[Token], index: int, expected: frozenset[str], file: str) -> Diagnostic:
    """The finding about the token at the index, where the rule would have taken what is expected."""
    stop = Stop(rule, tokens, index, expected, file)
    for cause in _CAUSES:
        if found := cause(stop):
            return found
    span = stop.token.span
    if stop.token.kind == "$END":
        span = Span(stop.before.start, stop.before.end) if stop.index else span
    return syntax_error("PE0101", f"found {_shown(stop)}, expected {_expectations(stop)}", stop.file, span)


# --- one mistake each ------------------------------------------------------------------------------------


def _bracket(stop: Stop) -> Diagnostic | None:
    """A bracket left open, closed by another kind, or closed without being open."""
    kind, opened = stop.token.kind, open_brackets(stop.tokens[: stop.index])
    is_clause = kind in _CLAUSES and stop.wants_operator and opened and opened[-1].kind != "LBRACE"
    if opened and (kind == "$END" or is_clause):
        last = opened[-1]
        return stop.finding("PE0106", f"`{last.text}` is never closed by `{CLOSING[last.kind]}`", last)
    if kind not in OPENING or (opened and opened[-1].kind == OPENING[kind]):
        return None
    if not opened or not open_brackets([*stop.tokens[: stop.index], *stop.tokens[stop.index + 1 :]]):
        return stop.finding("PE0107", f"`{stop.token.text}` closes nothing", stop.token, "")
    last = opened[-1]
    message = f"`{last.text}` is closed by `{stop.token.text}`; write `{CLOSING[last.kind]}`"
    return stop.finding("PE0106", message, stop.token, None, (Related(last.span, "opened here"),))


def _assignment(stop: Stop) -> Diagnostic | None:
    """`=` where values are compared, or where a field has its `:`; `==` or a `{` where a value is given."""
    if "EQUAL" in stop.expected and stop.token.text == "==":
        return stop.finding("PE0101", "`==` compares; a value is given by `=`", stop.token, "=")
    if "EQUAL" in stop.expected and stop.token.kind == "LBRACE":
        return stop.finding("PE0101", f"the value of a {stop.rule} stands behind `=`, not in braces", stop.token)
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
        kinds = [token.kind for token in stop.tokens[: stop.index + 1]]
        first = kinds.index("EQUAL")
        if "WHEN" in kinds[:first] and "COMPARISON" not in kinds[:first]:
            at = stop.tokens[first]  # of `when a = b = c` the last gives the score
    return stop.finding("PE0102", "`=` does not compare; write `==`", at, "==")


def _message_literal(stop: Stop) -> Diagnostic | None:
    """`Type{field: value}`."""
    after = stop.tokens[stop.index + 1 : stop.index + 3]
    looks_so = stop.token.kind == "LBRACE" and stop.before.kind == "NAME" and stop.wants_operator
    if looks_so and len(after) == 2 and (after[0].kind == "RBRACE" or after[1].kind == "COLON"):
        return stop.finding("PE0111", 'there are no message literals; a map is written `{"key": value}`', stop.token)
    return None


def _number(stop: Stop) -> Diagnostic | None:
    """A suffix apart from its number, or a number that ends in a dot."""
    token, before = stop.token, stop.before
    if before.kind in _NUMBERS and token.text in _SUFFIXES and stop.wants_operator:
        glued = before.text + token.text
        message = f"a suffix stands right behind its number: {quoted(glued)}"
        return stop.finding("PE0201", message, Span(before.start, token.end), glued)
    if before.kind == "DOT" and stop.index > 1 and stop.tokens[stop.index - 2].kind == "INT":
        number = stop.tokens[stop.index - 2]
        if number.end == before.start:
            return stop.finding("PE0201", f"a number does not end in a dot; write {quoted(number.text + '.0')}", before)
    return None


def _quotes(stop: Stop) -> Diagnostic | None:
    """A name without quotes, a colon behind a keyword, or a let's name in quotes."""
    token = stop.token
    if stop.expected == {"STRING"} and is_word(token) and stop.index == 1 and stop.rule in _NAMED:
        article = "an" if stop.rule[0] in "aeiou" else "a"
        return stop.finding("PE0101", f"the name of {article} {stop.rule} stands in quotes", token, f'"{token.text}"')
    if stop.expected == {"STRING"} and is_word(token) and stop.following.kind != "STRING":
        return stop.finding("PE0101", f'a name stands in quotes: `"{token.text}"`', token, f'"{token.text}"')
    wants_value = "INT" in stop.expected or stop.expected == {"STRING"}
    if token.kind in ("COLON", "EQUAL") and stop.before.kind in keyword_terminals() and wants_value:
        return stop.finding("PE0101", f"no `{token.text}` stands behind `{stop.before.text}`", token, "")
    bare = stop.expected == {"NAME"} and token.kind == "STRING" and stop.index == 1
    inside = token.text[1:-1]
    if bare and inside.isidentifier() and inside.isascii():
        return stop.finding("PE0101", f"the name of a {stop.rule} stands without quotes", token, inside)
    return None


def _clauses(stop: Stop) -> Diagnostic | None:
    """What a member needs and has not, or has in another order."""
    kind = stop.token.kind
    if kind == "ELSE" and stop.before.kind == "COMMA":
        return stop.finding("PE0101", "no `,` stands before `else`", stop.before, "")
    if stop.rule == "filter" and "STRING" in (kind, stop.following.kind) and not stop.expected & {"STRING", "COLON"}:
        at = stop.token if kind != "STRING" else stop.before
        if at.kind == "COMMA" or kind != "STRING":
            return stop.finding(
                "PE0101", "the text of a refusal stands behind `else`", at, " else" if at.kind == "COMMA" else "else"
            )
    if kind == "PLUS" and stop.before.kind == "STRING":
        return stop.finding("PE0101", 'a text is filled in by `{…}`, as in `"on {node.name}"`', stop.token)
    if stop.rule == "score" and stop.index == 2:
        order = "`weight` or `tier`, `when`, `normalize`, `=`"
        if kind in ("WHEN", "NORMALIZE"):
            return stop.finding("PE0101", f"the clauses of a score stand in this order: {order}", stop.token)
        if kind == "EQUAL" or kind == "$END":
            return stop.finding("PE0101", "a score needs a weight before `=`, as in `weight 1`, or `tier`", stop.token)
    if stop.rule == "let" and kind == "COLON" and stop.index == 2:
        return stop.finding("PE0101", "a let has no type of its own; write `=`", stop.token)
    if "REQUIRE" in stop.expected and stop.rule == "filter" and begins_value(stop.token) and not stop.wants_operator:
        return stop.finding("PE0101", f"found {_shown(stop)}, expected `require` before a condition", stop.token)
    return None


def _misspelt(stop: Stop) -> Diagnostic | None:
    """A word that is nearly one of those expected."""
    if not is_word(stop.token) or stop.token.kind in RESERVED:
        return None
    words = {text for text, kind in word_terminals().items() if kind in stop.expected and kind not in RESERVED}
    meant = WORDS_ELSEWHERE.get(stop.token.text.lower())
    if "NAME" in stop.expected or not (near := meant if meant in words else closest(stop.token.text, words)):
        return None
    message = f"found {_shown(stop)}, expected {_expectations(stop)}; did you mean `{near}`?"
    return stop.finding("PE0101", message, stop.token, near)


def _missing_comma(stop: Stop) -> Diagnostic | None:
    """Two values side by side in brackets."""
    if stop.wants_operator and "COMMA" in stop.expected and begins_value(stop.token):
        opened = open_brackets(stop.tokens[: stop.index])
        if opened:
            is_own = len(opened) == 1 and opened[0].kind == "LBRACE" and stop.rule != "expression"
            span = Span(stop.before.end, stop.before.end)
            fix = None if is_own else Fix("insert `,`", (Edit(span, ","),))
            missing = "an operator" if is_own else "a `,` or an operator"
            message = f"found {_shown(stop)} right behind {_named(stop.before)}; is {missing} missing?"
            return syntax_error("PE0101", message, stop.file, stop.token.span, fix)
    return None


_CAUSES: tuple[Callable[[Stop], Diagnostic | None], ...] = (
    _bracket,
    _assignment,
    *HABITS,
    _message_literal,
    _number,
    _quotes,
    _misspelt,
    _clauses,
    _missing_comma,
)


def _shown(stop: Stop) -> str:
    if stop.token.kind == "$END":
        return f"the end of the {stop.rule} behind {_named(stop.before)}" if stop.index else "nothing"
    return _named(stop.token)


def _named(token: Token) -> str:
    return f"the string {quoted(token.text)}" if token.kind == "STRING" else quoted(token.text)


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
    texts = {kind: text for text, kind in [*word_terminals().items(), *sign_terminals().items()]}
    found += sorted(f"`{texts[kind]}`" for kind in left if kind in texts)
    if "$END" in left:
        found.append("nothing more" if stop.rule == "expression" else "the next member")
    return " or ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)
