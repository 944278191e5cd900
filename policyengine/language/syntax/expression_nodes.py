"""The syntax tree of expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any
from typing import Literal as OneOf

from msgspec import Struct


class Span(Struct, frozen=True, gc=False):
    """A half-open range of character offsets into the source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From the start of this span to the end of the other."""
        return Span(self.start, other.end)


class Node(Struct, frozen=True, kw_only=True, gc=False):
    """Anything with a place in the text.

    Nodes are made from the leaves up and never change, so none can be part of a cycle: the collector passes them by.
    """

    span: Span


class Expr(Node, frozen=True, kw_only=True):
    """An expression."""


class Literal(Expr, frozen=True, kw_only=True):
    """`true`, `null`, `42`, `4.5`, `"text"`. Unsigned: a sign is a `Unary`."""

    value: bool | int | float | str | None


class BytesLiteral(Expr, frozen=True, kw_only=True):
    """`b"…"`: CEL has it, the language leaves it out; kept so that a message can say so."""

    value: bytes


class UintLiteral(Expr, frozen=True, kw_only=True):
    """`7u`: CEL has it, the language leaves it out."""

    value: int


class QuantityLiteral(Expr, frozen=True, kw_only=True):
    """`500m`, `2Gi`, `1.5G`: the number as written and its suffix."""

    number: str
    suffix: str


class DurationLiteral(Expr, frozen=True, kw_only=True):
    """`90s`, `5min`, `250ms`: the number as written and its unit (`ms s min h d`)."""

    number: str
    unit: str


class Name(Expr, frozen=True, kw_only=True):
    """An identifier; a leading dot (CEL's absolute name) is kept in `absolute`."""

    name: str
    absolute: bool = False


class Select(Expr, frozen=True, kw_only=True):
    """`operand.field`, or `operand.?field`."""

    operand: Expr
    field: str
    field_span: Span
    optional: bool = False


class Index(Expr, frozen=True, kw_only=True):
    """`operand[key]`, or `operand[?key]`."""

    operand: Expr
    key: Expr
    optional: bool = False


class Call(Expr, frozen=True, kw_only=True):
    """`function(args)` or `target.function(args)`; macros (`has exists all filter map …`) too."""

    target: Expr | None
    function: str
    function_span: Span
    args: tuple[Expr, ...]


class Unary(Expr, frozen=True, kw_only=True):
    """`!e` or `-e`."""

    op: OneOf["!", "-"]
    operand: Expr


class Binary(Expr, frozen=True, kw_only=True):
    """`|| && == != < <= > >= in + - * / %`."""

    op: str
    left: Expr
    right: Expr


class Conditional(Expr, frozen=True, kw_only=True):
    """`condition ? then : otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


class ListItem(Node, frozen=True, kw_only=True):
    """One item of a list literal; `?e` includes the value of an optional where it has one."""

    value: Expr
    optional: bool = False


class ListLiteral(Expr, frozen=True, kw_only=True):
    """`[a, b, ?c]`."""

    items: tuple[ListItem, ...]


class MapEntry(Node, frozen=True, kw_only=True):
    """One entry of a map literal, `k: v` or `?k: v`."""

    key: Expr
    value: Expr
    optional: bool = False


class MapLiteral(Expr, frozen=True, kw_only=True):
    """`{k: v}`. In `use given quota bind` a bare name key is a string (`check` decides by place)."""

    entries: tuple[MapEntry, ...]


class Template(Node, frozen=True, kw_only=True):
    """A string in which `{expr}` is filled in: literal pieces and expressions, in order."""

    parts: tuple[str | Expr, ...]


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts of an expression, in the order they are written."""
    parts = _PARTS.get(type(expr))
    return parts(expr) if parts is not None else ()


_PARTS: dict[type[Node], Callable[[Any], tuple[Expr, ...]]] = {
    Select: lambda expr: (expr.operand,),
    Index: attrgetter("operand", "key"),
    Call: lambda expr: expr.args if expr.target is None else (expr.target, *expr.args),
    Unary: lambda expr: (expr.operand,),
    Binary: attrgetter("left", "right"),
    Conditional: attrgetter("condition", "then", "otherwise"),
    ListLiteral: lambda expr: tuple(item.value for item in expr.items),
    MapLiteral: lambda expr: tuple(part for entry in expr.entries for part in (entry.key, entry.value)),
}


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its parts, depth first."""
    pending = [expr]
    while pending:
        expr = pending.pop()
        yield expr
        pending += reversed(children(expr))


def names_in(expr: Expr) -> frozenset[str]:
    """Every name that stands alone in the expression, variables of macros included."""
    return frozenset(part.name for part in walk(expr) if isinstance(part, Name))
