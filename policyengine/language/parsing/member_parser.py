"""The tokens of one member or expression -> its value, by Lark's LALR(1) parser, which is fed token by token.

Keywords are contextual: a word is a keyword only in a state that accepts it, and a name everywhere else. Each rule's
value is made when the rule is complete, so what stands before a mistake is looked at too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from msgspec import Struct

from policyengine.language.diagnostics import Diagnostic, in_order
from policyengine.language.parsing.expression_actions import MAX_DEPTH, ExpressionActions, Reduction, reduction_of
from policyengine.language.parsing.grammar import CLOSING, OPENING, OPERATORS, RESERVED, keyword_terminals, parser
from policyengine.language.parsing.tokens import Token, Tokens, tokenise
from policyengine.language.parsing.unexpected import explain
from policyengine.language.syntax import Expr, Span
from policyengine.language.syntax_codes import syntax_error

MAX_TEXT = 1024 * 1024
"""Bytes of a file, characters of an expression."""
_NAME_GOES_ON = OPERATORS | {"COMMA", "RBRACE", "ASC", "DESC", "MISSING", "ORDER", "FAIR", "BACKOFF", "FLUSH"}
"""What follows a name in an expression, but no keyword that may stand where a key of `order by` may."""


def parse_expression(text: str, file: str = "<expression>") -> tuple[Expr | None, list[Diagnostic]]:
    """The tree of an expression and what is wrong with it; the tree is None where there is none.

    Spans are character offsets in the text. No text raises.
    """
    if len(text) > MAX_TEXT:
        return None, [syntax_error("PE0402", "an expression has at most 1 MiB", file, Span(0, 0))]
    return parse_cut(tokenise(text, file), file)


def parse_cut(cut: Tokens, file: str) -> tuple[Expr | None, list[Diagnostic]]:
    """The expression that tokens make, and all findings, those about characters included."""
    if not cut.complete:
        return None, in_order(cut.findings)
    actions = ExpressionActions(file)
    found = parse_tokens("expression", cut.tokens, actions, cut.broken)
    return found, in_order([*cut.findings, *actions.findings])


def parse_tokens(rule: str, tokens: Sequence[Token], actions: ExpressionActions, broken: set[int]) -> Any:
    """The value of a start rule over tokens, of which the last is an `$END`; None where it has none.

    What is wrong is added to the actions' findings.

    Arguments:
        broken: starts of tokens that a finding covers already.
    """
    actions.is_shallow = len(tokens) <= MAX_DEPTH
    if not actions.is_shallow and (deep := _too_deep(tokens)) is not None:
        message = f"brackets stand more than {MAX_DEPTH} deep here; give parts of it names with `let`"
        actions.findings.append(syntax_error("PE0401", message, actions.file, deep.span))
        return None
    run = _Run(rule, actions.value)
    stop = run.take(tokens)
    if stop is not None and not any(token.start in broken for token in tokens[: stop + 1]):
        expected = expected_behind(rule, tokens[:stop])
        actions.findings.append(explain(rule, tokens, stop, expected, actions.file))
    made = None if stop is not None or actions.is_too_deep else run.value
    actions.finish()
    return made


class Applied(Struct, frozen=True, gc=False):
    """A rule of the grammar where it applies: its place and its parts."""

    rule: str
    span: Span
    parts: Sequence[Applied | Token | None]


def applications(rule: str, tokens: Sequence[Token]) -> list[Applied]:
    """The rules that apply to tokens without a mistake, of which the last is an `$END`; parts before the whole."""
    found: list[Applied] = []

    def note(reduction: Reduction, span: Span, parts: Sequence[Any]) -> Applied:
        found.append(Applied(reduction.rule, span, parts))
        return found[-1]

    _Run(rule, note).take(tokens)
    return found


def expected_behind(rule: str, tokens: Sequence[Token]) -> frozenset[str]:
    """The terminals that may come behind tokens a start rule begins with; none where these fit nothing already."""
    run = _Run(rule, lambda reduction, span, parts: None)
    return frozenset(run.parser.accepts()) if run.take(tokens) is None else frozenset()


class _Symbol(Struct, gc=False):
    """A token, or the value of a rule, as it stands on Lark's stack. `type`: the terminal that a token counts as."""

    type: str
    value: Any
    start: int
    end: int


class _Callbacks:
    """What Lark asks for the value of a rule that is complete."""

    def __init__(self, make: Callable[[Reduction, Span, list[Any]], Any]) -> None:
        self._make = make

    def __contains__(self, terminal: str) -> bool:
        return False  # tokens stay what they are

    def __getitem__(self, rule: object) -> Callable[[list[_Symbol]], _Symbol]:
        return partial(self._made, reduction_of(rule))

    def _made(self, reduction: Reduction, symbols: list[_Symbol]) -> _Symbol:
        parts: list[Any] = []
        if reduction.parts is None:
            parts = [symbol.value for symbol in symbols]
        for place, is_several in reduction.parts or ():
            if is_several and not parts:
                parts = symbols[place].value  # a long repetition grows, and is not copied each time
            elif is_several:
                parts += symbols[place].value
            else:
                parts.append(symbols[place].value if place >= 0 else None)
        start, end = symbols[0].start, symbols[-1].end
        if reduction.is_inlined:
            return _Symbol("", parts, start, end)
        if reduction.is_passed and len(parts) == 1:
            return _Symbol("", parts[0], start, end)
        return _Symbol("", self._make(reduction, Span(start, end), parts), start, end)


class _Run:
    """One parse."""

    value: Any = None
    """Of the start rule, where all tokens fit."""

    def __init__(self, rule: str, make: Callable[[Reduction, Span, list[Any]], Any]) -> None:
        from lark import UnexpectedToken

        self.misfit = UnexpectedToken
        self.parser = cast(Any, parser()).parse_interactive("", rule)
        self.parser.parser_state.parse_conf.callbacks = _Callbacks(make)

    def take(self, tokens: Sequence[Token]) -> int | None:
        """Parses tokens; the index of the one that fits nothing, None where all fit. What is complete before a token
        is complete whether it fits or not."""
        keywords, feed = keyword_terminals() - RESERVED, self.parser.feed_token
        for index, token in enumerate(tokens):
            kind = token.kind
            if kind in keywords and self._is_name(tokens, index):
                kind = "NAME"
            try:
                made = feed(_Symbol(kind, token, token.start, token.end))
            except self.misfit:
                if kind not in keywords:
                    return index
                try:
                    made = feed(_Symbol("NAME", token, token.start, token.end))
                except self.misfit:
                    return index
            self.value = made and made.value
        return None

    def _is_name(self, tokens: Sequence[Token], index: int) -> bool:
        """Whether a word that may be a keyword here is a name, by what follows it."""
        is_last = index + 1 == len(tokens)
        _, leads_to = self.parser.choices().get("NAME", (None, None))
        return isinstance(leads_to, int) and not is_last and tokens[index + 1].kind in _NAME_GOES_ON


def _too_deep(tokens: Sequence[Token]) -> Token | None:
    depth = 0
    for token in tokens:
        if token.kind in CLOSING:
            depth += 1
            if depth > MAX_DEPTH + 1:  # a member's own braces are one
                return token
        elif token.kind in OPENING:
            depth -= 1
    return None
