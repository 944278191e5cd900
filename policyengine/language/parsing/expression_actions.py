"""What the automaton calls for the rules of expressions: tokens and values in, syntax nodes out."""

# ruff: noqa: D102 - an action does what its rule in the grammar says

from __future__ import annotations

import math

from msgspec.structs import replace

from policyengine.language import syntax
from policyengine.language.diagnostics import Diagnostic
from policyengine.language.parsing.literal_values import (
    MAX_INT,
    MAX_STRING,
    MAX_WORD,
    LiteralError,
    decode_bytes,
    decode_int,
    decode_string,
)
from policyengine.language.parsing.tokens import Token
from policyengine.language.syntax import Expr, Span
from policyengine.language.syntax_codes import quoted, syntax_error

MAX_DEPTH = 64
"""Levels of an expression. Whoever walks a tree may do so by recursion."""


class ExpressionActions:
    """An action a rule, under the rule's name. Findings are collected; a node stands in for what is wrong."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Diagnostic] = []
        self.strings: dict[int, str] = {}
        """Where a string literal starts -> how it is written: what `{expr}` in it is found by."""
        self.is_shallow = False
        """Whether there are too few tokens for anything to be too deep: a level takes one at least."""
        self._depths: dict[int, int] = {}
        self._kept: list[Expr] = []
        self._too_large: dict[int, Diagnostic] = {}
        self.is_too_deep = False

    def finish(self) -> None:
        """Reports what could not be judged before the end: a 2**63 with no `-` before it. What follows is new."""
        self.findings += self._too_large.values()
        self._too_large, self._depths, self._kept, self.is_too_deep = {}, {}, [], False

    # --- depth: known from below, as a tree is built from its leaves -----------------------------------

    def _grown(self, node: Expr, *parts: Expr) -> Expr:
        if self.is_shallow:
            return node
        depths, depth = self._depths, 1
        for part in parts:
            depth = max(depth, 1 + depths.get(id(part), 1))
        if depth > MAX_DEPTH:
            depth = 1
            node = syntax.Name(span=node.span, name="_")
            if not self.is_too_deep:
                self.is_too_deep = True
                message = f"the expression is more than {MAX_DEPTH} levels deep; give parts of it names with `let`"
                self.findings.append(syntax_error("PE0401", message, self.file, node.span))
        self._depths[id(node)] = depth
        self._kept.append(node)  # an id stays the node's own while the node lives
        return node

    # --- operators ------------------------------------------------------------------------------------

    def expression(self, _start: int, _end: int, value: Expr) -> Expr:
        return value

    def conditional(self, start: int, end: int, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        span = Span(start, end)
        node = syntax.Conditional(span=span, condition=condition, then=then, otherwise=otherwise)
        return self._grown(node, condition, then, otherwise)

    def binary(self, start: int, end: int, left: Expr, op: Token, right: Expr) -> Expr:
        return self._grown(syntax.Binary(span=Span(start, end), op=op.text, left=left, right=right), left, right)

    def unary(self, start: int, end: int, op: Token, operand: Expr) -> Expr:
        if op.kind == "MINUS":
            if isinstance(operand, syntax.Literal):
                self._too_large.pop(operand.span.start, None)
            return self._grown(syntax.Unary(span=Span(start, end), op="-", operand=operand), operand)
        return self._grown(syntax.Unary(span=Span(start, end), op="!", operand=operand), operand)

    def parenthesised(self, start: int, end: int, value: Expr) -> Expr:
        """The same node with a span that takes its brackets in, so that a span can be cut out and stay whole."""
        widened = replace(value, span=Span(start, end))
        if self.is_shallow:
            return widened
        self._depths[id(widened)] = self._depths.get(id(value), 1)
        self._kept.append(widened)
        return widened

    # --- members and calls ----------------------------------------------------------------------------

    def selector(self, _start: int, _end: int, name: Token) -> Token:
        self._check_word(name)
        return name

    def select(self, start: int, end: int, operand: Expr, field: Token) -> Expr:
        return self._selection(Span(start, end), operand, field, optional=False)

    def optional_select(self, start: int, end: int, operand: Expr, field: Token) -> Expr:
        return self._selection(Span(start, end), operand, field, optional=True)

    def _selection(self, span: Span, operand: Expr, field: Token, optional: bool) -> Expr:
        name = field.text.strip("`")
        node = syntax.Select(span=span, operand=operand, field=name, field_span=field.span, optional=optional)
        return self._grown(node, operand)

    def index(self, start: int, end: int, operand: Expr, key: Expr) -> Expr:
        return self._grown(syntax.Index(span=Span(start, end), operand=operand, key=key), operand, key)

    def optional_index(self, start: int, end: int, operand: Expr, key: Expr) -> Expr:
        node = syntax.Index(span=Span(start, end), operand=operand, key=key, optional=True)
        return self._grown(node, operand, key)

    def arguments(self, _start: int, _end: int, *values: Expr) -> tuple[Expr, ...]:
        return values

    def call(self, start: int, end: int, function: Token, args: tuple[Expr, ...] | None) -> Expr:
        return self._called(Span(start, end), None, function, args or ())

    def method(self, start: int, end: int, target: Expr, function: Token, args: tuple[Expr, ...] | None) -> Expr:
        return self._called(Span(start, end), target, function, args or ())

    def _called(self, span: Span, target: Expr | None, function: Token, args: tuple[Expr, ...]) -> Expr:
        self._check_word(function)
        place = function.span
        node = syntax.Call(span=span, target=target, function=function.text, function_span=place, args=args)
        return self._grown(node, *args) if target is None else self._grown(node, target, *args)

    def variable(self, start: int, end: int, name: Token) -> Expr:
        self._check_word(name)
        return syntax.Name(span=Span(start, end), name=name.text)

    def absolute(self, start: int, end: int, name: Token) -> Expr:
        self._check_word(name)
        return syntax.Name(span=Span(start, end), name=name.text, absolute=True)

    # --- lists and maps -------------------------------------------------------------------------------

    def item(self, start: int, end: int, value: Expr) -> syntax.ListItem:
        return syntax.ListItem(span=Span(start, end), value=value)

    def optional_item(self, start: int, end: int, value: Expr) -> syntax.ListItem:
        return syntax.ListItem(span=Span(start, end), value=value, optional=True)

    def list_literal(self, start: int, end: int, *items: syntax.ListItem | None) -> Expr:
        present = tuple(item for item in items if item is not None)
        node = syntax.ListLiteral(span=Span(start, end), items=present)
        return self._grown(node, *(item.value for item in present))

    def entry(self, start: int, end: int, key: Expr, value: Expr) -> syntax.MapEntry:
        return syntax.MapEntry(span=Span(start, end), key=key, value=value)

    def optional_entry(self, start: int, end: int, key: Expr, value: Expr) -> syntax.MapEntry:
        return syntax.MapEntry(span=Span(start, end), key=key, value=value, optional=True)

    def map_literal(self, start: int, end: int, *entries: syntax.MapEntry | None) -> Expr:
        present = tuple(entry for entry in entries if entry is not None)
        node = syntax.MapLiteral(span=Span(start, end), entries=present)
        return self._grown(node, *(part for entry in present for part in (entry.key, entry.value)))

    # --- literals -------------------------------------------------------------------------------------

    def true(self, start: int, end: int, _word: Token) -> Expr:
        return syntax.Literal(span=Span(start, end), value=True)

    def false(self, start: int, end: int, _word: Token) -> Expr:
        return syntax.Literal(span=Span(start, end), value=False)

    def null(self, start: int, end: int, _word: Token) -> Expr:
        return syntax.Literal(span=Span(start, end), value=None)

    def integer(self, start: int, end: int, number: Token) -> Expr:
        return syntax.Literal(span=Span(start, end), value=self._int(number, number.text))

    def unsigned(self, start: int, end: int, number: Token) -> Expr:
        return syntax.UintLiteral(span=Span(start, end), value=self._int(number, number.text[:-1], signed=False))

    def _int(self, token: Token, digits: str, signed: bool = True) -> int:
        if not self._check_word(token):
            return 0
        try:
            value = decode_int(digits) if signed else int(digits, 16 if digits[:2] == "0x" else 10)
        except LiteralError as error:
            self._report("PE0202", f"{quoted(token.text)} is too large: {error}", token.span)
            return 0
        if value >= (MAX_INT if signed else 2**64):
            message = f"{quoted(token.text)} is too large: the number does not fit 64 bits"
            self._too_large[token.start] = syntax_error("PE0202", message, self.file, token.span)
        return value

    def double(self, start: int, end: int, number: Token) -> Expr:
        value = float(number.text) if self._check_word(number) else 0.0
        if math.isinf(value):
            self._report("PE0202", f"{quoted(number.text)} is too large for a double", number.span)
            value = 0.0
        return syntax.Literal(span=Span(start, end), value=value)

    def quantity(self, start: int, end: int, text: Token) -> Expr:
        self._check_word(text)
        number = text.text.rstrip("mkKMGTPEi")
        return syntax.QuantityLiteral(span=Span(start, end), number=number, suffix=text.text[len(number) :])

    def duration(self, start: int, end: int, text: Token) -> Expr:
        self._check_word(text)
        number = text.text.rstrip("msinhd")
        return syntax.DurationLiteral(span=Span(start, end), number=number, unit=text.text[len(number) :])

    def string(self, start: int, end: int, text: Token) -> Expr:
        self.strings[start] = text.text
        return syntax.Literal(span=Span(start, end), value=self.text_of(text))

    def byte_string(self, start: int, end: int, text: Token) -> Expr:
        value = b""
        try:
            value = decode_bytes(text.text) if self._check_length(text) else b""
        except LiteralError as error:
            self._report("PE0204", str(error), Span(start + error.start, start + error.end))
        return syntax.BytesLiteral(span=Span(start, end), value=value)

    def text_of(self, token: Token) -> str:
        """The value of a string token; '' where it has none, which is reported."""
        try:
            return decode_string(token.text) if self._check_length(token) else ""
        except LiteralError as error:
            self._report("PE0204", str(error), Span(token.start + error.start, token.start + error.end))
            return ""

    def _check_word(self, token: Token) -> bool:
        if len(token.text) <= MAX_WORD:
            return True
        self._report("PE0403", f"{quoted(token.text)} has more than {MAX_WORD} characters", token.span)
        return False

    def _check_length(self, token: Token) -> bool:
        if len(token.text) <= MAX_STRING:
            return True
        self._report("PE0403", f"the string has more than {MAX_STRING:,} characters", token.span)
        return False

    def _report(self, code: str, message: str, span: Span) -> None:
        self.findings.append(syntax_error(code, message, self.file, span))
