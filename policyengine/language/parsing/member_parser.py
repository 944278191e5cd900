"""The tokens of one member or expression -> its value, by the grammar's LALR(1) table.

Keywords are contextual: a word is a keyword only in a state that accepts it, and a name everywhere else. Each rule's
value is made when the rule is complete, so what stands before a mistake is looked at too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from policyengine.language.diagnostics import Diagnostic, in_order
from policyengine.language.parsing.expression_actions import MAX_DEPTH, ExpressionActions
from policyengine.language.parsing.grammar import CLOSING, OPENING, OPERATORS, RESERVED, keyword_terminals
from policyengine.language.parsing.parse_table import END, Reduction, parse_table
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
    made = None if stop is not None or actions.is_too_deep else run.values[0]
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
    return run.expected() if run.take(tokens) is None else frozenset()


class _Run:
    """One parse. `values` has what was made of the tokens so far: one value for each symbol of rules still open."""

    def __init__(self, rule: str, make: Callable[[Reduction, Span, list[Any]], Any]) -> None:
        table = parse_table()
        self.actions, self.goto, self.last = table.actions, table.goto, table.last[rule]
        self.stack = [table.first[rule]]
        self.make = make
        self.values: list[Any] = []
        self.starts: list[int] = []
        """Where each of the values begins."""

    def take(self, tokens: Sequence[Token]) -> int | None:
        """Parses tokens; the index of the one that fits nothing, None where all fit."""
        actions, stack = self.actions, self.stack
        keywords = keyword_terminals() - RESERVED
        end = 0
        for index, token in enumerate(tokens):
            kind = token.kind
            if kind in keywords and self._is_name(tokens, index):
                kind = "NAME"
            while not isinstance(action := actions[stack[-1]].get(kind), int):
                if action is not None:
                    self._reduce(action, end)
                    if kind == END and stack[-1] == self.last:
                        return None
                elif kind in keywords:
                    kind = "NAME"
                else:
                    return index
            stack.append(action)
            self.values.append(token)
            self.starts.append(token.start)
            end = token.end
        return None

    def _is_name(self, tokens: Sequence[Token], index: int) -> bool:
        """Whether a word that may be a keyword here is a name, by what follows it."""
        is_last = index + 1 == len(tokens)
        name = self.actions[self.stack[-1]].get("NAME")
        return isinstance(name, int) and not is_last and tokens[index + 1].kind in _NAME_GOES_ON

    def _reduce(self, reduction: Reduction, end: int) -> None:
        """Puts the value of a rule in the place of its symbols'."""
        stack, values, starts = self.stack, self.values, self.starts
        size, wanted = reduction.size, reduction.parts
        parts = values[-size:]
        del values[-size:], stack[-size:], starts[len(starts) - size + 1 :]
        if wanted is not None:
            symbols, parts = parts, []
            for place, is_several in wanted:
                if is_several and not parts:
                    parts = symbols[place]  # a long repetition grows, and is not copied each time
                elif is_several:
                    parts += symbols[place]
                else:
                    parts.append(symbols[place] if place >= 0 else None)
        if reduction.is_inlined:
            values.append(parts)
        elif reduction.is_passed and len(parts) == 1:
            values.append(parts[0])
        else:
            values.append(self.make(reduction, Span(starts[-1], end), parts))
        stack.append(self.goto[stack[-1]][reduction.symbol])

    def expected(self) -> frozenset[str]:
        """The terminals that may come next."""
        return frozenset(filter(self._takes, self.actions[self.stack[-1]]))

    def _takes(self, kind: str) -> bool:
        """Whether a terminal fits: a rule that it completes may turn out to want another."""
        stack = self.stack.copy()
        while isinstance(action := self.actions[stack[-1]].get(kind), Reduction):
            del stack[-action.size :]
            stack.append(self.goto[stack[-1]][action.symbol])
            if kind == END and stack[-1] == self.last:
                return True
        return action is not None


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
