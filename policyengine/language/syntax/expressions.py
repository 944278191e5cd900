"""The syntax tree of expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets into the source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From the start of this span to the end of the other."""
        return Span(self.start, other.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Anything with a place in the text."""

    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Node):
    """`true`, `null`, `42`, `4.5`, `"text"`. Unsigned: a sign is a `Unary`."""

    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesLiteral(Node):
    """`b"…"`: CEL has it, the language leaves it out; kept so that a message can say so."""

    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UintLiteral(Node):
    """`7u`: CEL has it, the language leaves it out."""

    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityLiteral(Node):
    """`500m`, `2Gi`, `1.5G`: the number as written and its suffix."""

    number: str
    suffix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationLiteral(Node):
    """`90s`, `5min`, `250ms`: the number as written and its unit (`ms s min h d`)."""

    number: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Node):
    """An identifier; a leading dot (CEL's absolute name) is kept in `absolute`."""

    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Node):
    """`operand.field`, or `operand.?field`."""

    operand: Expr
    field: str
    field_span: Span
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(Node):
    """`operand[key]`, or `operand[?key]`."""

    operand: Expr
    key: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Node):
    """`function(args)` or `target.function(args)`; macros (`has exists all filter map …`) too."""

    target: Expr | None
    function: str
    function_span: Span
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(Node):
    """`!e` or `-e`."""

    op: OneOf["!", "-"]
    operand: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Node):
    """`|| && == != < <= > >= in + - * / %`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional(Node):
    """`condition ? then : otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem(Node):
    """One item of a list literal; `?e` includes the value of an optional where it has one."""

    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLiteral(Node):
    """`[a, b, ?c]`."""

    items: tuple[ListItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapEntry(Node):
    """One entry of a map literal, `k: v` or `?k: v`."""

    key: Expr
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLiteral(Node):
    """`{k: v}`. In `use given quota bind` a bare name key is a string (`check` decides by place)."""

    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLiteral(Node):
    """`Type{field: v}`: CEL has it, the language leaves it out."""

    type_name: str


Expr = (
    Literal
    | BytesLiteral
    | UintLiteral
    | QuantityLiteral
    | DurationLiteral
    | Name
    | Select
    | Index
    | Call
    | Unary
    | Binary
    | Conditional
    | ListLiteral
    | MapLiteral
    | MessageLiteral
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template(Node):
    """A string in which `{expr}` is filled in: literal pieces and expressions, in order."""

    parts: tuple[str | Expr, ...]
