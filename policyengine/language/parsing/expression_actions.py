"""The parts of an expression -> syntax nodes, with a finding for every literal that is none.

A rule's parts are what its symbols stand for, without the keywords and signs that say nothing more, and with None for
what is left out of `[…]`. A rule `_x` gives its parts to the rule around it, and `?x` of a single part is that part. A
rule `optional_x` is a rule `x` whose node is optional. For example `require: "require" expr ["else" template]
[on_error]` has three parts: the condition, None or a template, and None or an expression.

Most rules only name the parts of a node: `NODES` says which. A rule with an action of its own does more.
"""

# ruff: noqa: D102 - an action does what its rule in the grammar says

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from policyengine.language import syntax
from policyengine.language.diagnostics import Diagnostic
from policyengine.language.parsing.literal_values import (
    MAX_INT,
    MAX_STRING,
    MAX_WORD,
    LiteralError,
    decode_bytes,
    decode_string,
)
from policyengine.language.parsing.tokens import Token
from policyengine.language.syntax import Expr, Span
from policyengine.language.syntax_codes import quoted, syntax_error

MAX_DEPTH = 64
"""Levels of an expression. Whoever walks a tree may do so by recursion."""

BINDING = {"OR": 1, "AND": 2, "COMPARISON": 3, "IN": 3, "PLUS": 4, "MINUS": 4, "STAR": 5, "SLASH": 5, "PERCENT": 5}
"""How tightly binary operators bind: CEL's precedence."""

_Value = TypeVar("_Value")

Rows = Mapping[str, tuple[type[syntax.Node], tuple[str, ...]]]
NODES: Rows = {
    "conditional": (syntax.Conditional, ("condition", "then", "otherwise")),
    "index": (syntax.Index, ("operand", "key")),
    "item": (syntax.ListItem, ("value",)),
    "list_literal": (syntax.ListLiteral, ("*items",)),
    "entry": (syntax.MapEntry, ("key", "value")),
    "map_literal": (syntax.MapLiteral, ("*entries",)),
}
"""Rule -> its node, and the node's fields in the order of the rule's parts; `*` takes all that are left."""
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}


class Reduction(Struct, frozen=True, gc=False):
    """A rule of the grammar, applied to its symbols."""

    rule: str
    """The name by which the actions know it."""
    parts: tuple[tuple[int, bool], ...] | None
    """The symbols that are parts, by their places, and whether a symbol stands for several; -1: None is the part.
    None: all symbols are."""
    is_optional: bool
    is_passed: bool
    """Whether a single part stands for it."""
    is_inlined: bool


@cache
def reduction_of(rule: Any) -> Reduction:
    """What we know of a rule of Lark's.

    Its `empty_indices` has True for each part that is left out, between those that are there.
    """
    parts: list[tuple[int, bool]] = []
    symbols = iter(enumerate(rule.expansion))
    for is_left_out in rule.options.empty_indices or [False] * len(rule.expansion):
        if is_left_out:
            parts.append((-1, False))
            continue
        place, symbol = next(symbols)
        if not (symbol.is_term and symbol.filter_out):
            parts.append((place, not symbol.is_term and symbol.name.startswith("_")))
    name = rule.alias or rule.origin.name
    return Reduction(
        rule=name.removeprefix("optional_"),
        parts=None if parts == [(place, False) for place in range(len(rule.expansion))] else tuple(parts),
        is_optional=name.startswith("optional_"),
        is_passed=rule.options.expand1 and not rule.alias,
        is_inlined=rule.origin.name.startswith("_"),
    )


class ExpressionActions:
    """The nodes and actions of rules. Findings are collected; a node stands in for what is wrong.

    An action stands under its rule's name and takes the rule's span and parts: tokens, values, None for an absent one.
    """

    nodes: ClassVar[Rows] = NODES

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Diagnostic] = []
        self.strings: dict[int, str] = {}
        """Where a string literal starts -> how it is written: what `{expr}` in it is found by."""
        self.is_shallow = False
        """Whether there are too few tokens for anything to be too deep: a level takes one at least."""
        self.is_too_deep = False
        self._depths: dict[int, int] = {}
        self._kept: list[Expr] = []
        self._too_large: dict[int, Diagnostic] = {}

    def value(self, reduction: Reduction, span: Span, parts: list[Any]) -> Any:
        """The value of a rule where it applies: a node, or what the rule's action makes."""
        given: dict[str, Any] = {"optional": True} if reduction.is_optional else {}
        row = self.nodes.get(reduction.rule)
        if row is None:
            return getattr(self, reduction.rule)(span, *parts, **given)
        kind, names = row
        for at, name in enumerate(names):
            if name[0] == "*":
                given[name[1:]] = tuple([self._part(part) for part in parts[at:] if part is not None])
            else:
                given[name] = self._part(parts[at])
        node: Any = kind(span=span, **given)
        return self._grown(node)

    def _part(self, part: Any) -> Any:
        """A part of a rule as its node holds it."""
        return part

    def finish(self) -> None:
        """Reports what could not be evaluated before the end: a 2**63 with no `-` before it. What follows is new."""
        self.findings += self._too_large.values()
        self._too_large, self._depths, self._kept, self.is_too_deep = {}, {}, [], False

    # --- depth: known from below, as a tree is built from its leaves -----------------------------------

    def _grown(self, node: Expr) -> Expr:
        if self.is_shallow:
            return node
        depth = max((1 + self._depths.get(id(part), 1) for part in syntax.children(node)), default=1)
        if depth > MAX_DEPTH:
            depth = 1
            node = syntax.Name(span=node.span, name="_")
            if not self.is_too_deep:
                self.is_too_deep = True
                message = f"the expression is more than {MAX_DEPTH} levels deep; give parts of it names with `let`"
                self._report("PE0401", message, node.span)
        return self._measured(node, depth)

    def _measured(self, node: Expr, depth: int) -> Expr:
        self._depths[id(node)] = depth
        self._kept.append(node)  # an id stays the node's own while the node lives
        return node

    def expression(self, _span: Span, value: Expr) -> Expr:
        return value

    def chain(self, _span: Span, *parts: Any) -> Expr:
        """Operands and operators by turns, as binary nodes: what binds tighter is joined first, then from the left.

        `a - b * c < d`: at `*`, `-` waits, as it binds less; at `<`, `b * c` is joined, then `a - …`.
        """
        operands: list[Expr] = [parts[0]]
        waiting: list[Token] = []
        for op, operand in zip(parts[1::2], parts[2::2], strict=True):
            while waiting and BINDING[waiting[-1].kind] >= BINDING[op.kind]:
                self._join(operands, waiting.pop())
            waiting.append(op)
            operands.append(operand)
        while waiting:
            self._join(operands, waiting.pop())
        return operands[0]

    def _join(self, operands: list[Expr], op: Token) -> None:
        right, left = operands.pop(), operands.pop()
        node = syntax.Binary(span=left.span.to(right.span), op=op.text, left=left, right=right)
        operands.append(self._grown(node))

    def unary(self, span: Span, op: Token, operand: Expr) -> Expr:
        if op.kind == "MINUS" and isinstance(operand, syntax.Literal):
            self._too_large.pop(operand.span.start, None)
        return self._grown(syntax.Unary(span=span, op="-" if op.kind == "MINUS" else "!", operand=operand))

    def parenthesised(self, span: Span, value: Expr) -> Expr:
        """The same node with a span that takes its brackets in, so that a span can be cut out and stay whole."""
        widened = replace(value, span=span)
        return widened if self.is_shallow else self._measured(widened, self._depths.get(id(value), 1))

    def selector(self, _span: Span, name: Token) -> Token:
        self._check_word(name)
        return name

    def select(self, span: Span, operand: Expr, field: Token, optional: bool = False) -> Expr:
        name, place = field.text.strip("`"), field.span
        return self._grown(syntax.Select(span=span, operand=operand, field=name, field_span=place, optional=optional))

    def arguments(self, _span: Span, *values: Expr) -> tuple[Expr, ...]:
        return values

    def call(self, span: Span, function: Token, args: tuple[Expr, ...] | None) -> Expr:
        return self._called(span, None, function, args or ())

    def method(self, span: Span, target: Expr, function: Token, args: tuple[Expr, ...] | None) -> Expr:
        return self._called(span, target, function, args or ())

    def _called(self, span: Span, target: Expr | None, function: Token, args: tuple[Expr, ...]) -> Expr:
        self._check_word(function)
        name, place = function.text, function.span
        return self._grown(syntax.Call(span=span, target=target, function=name, function_span=place, args=args))

    def variable(self, span: Span, name: Token, absolute: bool = False) -> Expr:
        self._check_word(name)
        return syntax.Name(span=span, name=name.text, absolute=absolute)

    def absolute(self, span: Span, name: Token) -> Expr:
        return self.variable(span, name, absolute=True)

    def constant(self, span: Span, word: Token) -> Expr:
        return syntax.Literal(span=span, value=_CONSTANTS[word.kind])

    def integer(self, span: Span, number: Token) -> Expr:
        return syntax.Literal(span=span, value=self._int(number, number.text, MAX_INT))

    def unsigned(self, span: Span, number: Token) -> Expr:
        return syntax.UintLiteral(span=span, value=self._int(number, number.text[:-1], 2**64))

    def _int(self, token: Token, digits: str, limit: int) -> int:
        """The value of an integer literal below `limit`; 2**63 is checked at the end, as a `-` may stand before it."""
        if not self._check_word(token):
            return 0
        value = int(digits, 16 if digits[:2] in ("0x", "0X") else 10)
        if value < limit:
            return value
        place = token.span
        message = f"{quoted(token.text)} is too large: the number does not fit 64 bits"
        if value > MAX_INT:
            self._report("PE0202", message, place)
            return 0
        self._too_large[place.start] = syntax_error("PE0202", message, self.file, place)
        return value

    def double(self, span: Span, number: Token) -> Expr:
        value = float(number.text) if self._check_word(number) else 0.0
        if math.isinf(value):
            self._report("PE0202", f"{quoted(number.text)} is too large for a double", span)
            value = 0.0
        return syntax.Literal(span=span, value=value)

    def quantity(self, span: Span, text: Token) -> Expr:
        self._check_word(text)
        number = text.text.rstrip("mkKMGTPEi")
        return syntax.QuantityLiteral(span=span, number=number, suffix=text.text[len(number) :])

    def duration(self, span: Span, text: Token) -> Expr:
        self._check_word(text)
        number = text.text.rstrip("msinhd")
        return syntax.DurationLiteral(span=span, number=number, unit=text.text[len(number) :])

    def string(self, span: Span, text: Token) -> Expr:
        self.strings[span.start] = text.text
        return syntax.Literal(span=span, value=self._text_of(text.text, span))

    def byte_string(self, span: Span, text: Token) -> Expr:
        return syntax.BytesLiteral(span=span, value=self._decoded(decode_bytes, text.text, span) or b"")

    def _text_of(self, literal: str, span: Span) -> str:
        """The value of a string literal; '' where it has none, which is reported."""
        return self._decoded(decode_string, literal, span) or ""

    def _decoded(self, decode: Callable[[str], _Value], literal: str, span: Span) -> _Value | None:
        try:
            return decode(literal) if self._check_length(literal, span) else None
        except LiteralError as error:
            self._wrong_literal(error, span)
            return None

    def _wrong_literal(self, error: LiteralError, span: Span) -> None:
        self._report(error.code, str(error), Span(span.start + error.start, span.start + error.end))

    def _check_word(self, token: Token) -> bool:
        if len(token.text) <= MAX_WORD:
            return True
        self._report("PE0403", f"{quoted(token.text)} has more than {MAX_WORD} characters", token.span)
        return False

    def _check_length(self, literal: str, span: Span) -> bool:
        if len(literal) <= MAX_STRING:
            return True
        self._report("PE0403", f"the string has more than {MAX_STRING:,} characters", span)
        return False

    def _report(self, code: str, message: str, span: Span) -> None:
        self.findings.append(syntax_error(code, message, self.file, span))
