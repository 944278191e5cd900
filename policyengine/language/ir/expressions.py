"""Typed expressions: names resolved, overloads chosen, dimensions settled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal as OneOf

from policyengine.language.syntax import Span
from policyengine.language.types import Reach, Shape, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """What every expression has. `reach` is the largest of its parts'."""

    type: Type
    span: Span
    shape: Shape = Shape.SCALAR
    reach: Reach = Reach.CONSTANT


@dataclass(frozen=True, slots=True, kw_only=True)
class Const(Expr):
    """A literal. cpu: int millicores; memory, storage: int bytes; duration, timestamp: int nanoseconds.

    In dynamic mode (`policyengine.evaluate`) quantities, durations and timestamps are `values.*` objects.
    """

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Expr):
    """A field of a root of the schema, as one path: `("node", "free", "memory")`, `("pod", "labels")`.

    The path stops at the first list, map or optional; what follows is `Index`, `Select` or a call. A free
    variable of `policyengine.evaluate` is a path of one name with type dyn.
    """

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Expr):
    """A field of a value that is not a root: of a comprehension variable, a list element, a map (`m.k`)."""

    operand: Expr
    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(Expr):
    """`list[i]`, `map[k]`, and their optional forms `[?…]`."""

    operand: Expr
    key: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Has(Expr):
    """`has(operand.name)`: presence, never an error for an absent field."""

    operand: Expr
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LetRef(Expr):
    """A `let` by its full name (`safe.x` from a library); evaluated at most once a cycle."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamRef(Expr):
    """A `param` by its full name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Local(Expr):
    """A variable of an enclosing comprehension or function."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Expr):
    """An overload of the function table (`functions.FUNCTIONS`), operators included (`_+_`, `_<_`, `!_`, `-_`, `@in`).

    The overload follows from the argument types; a method's target is its first argument.
    """

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic(Expr):
    """`&&` or `||` of two or more, absorbing errors in either order."""

    op: OneOf["&&", "||"]
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional(Expr):
    """`condition ? then : otherwise`; only the branch taken can err."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ListExpr(Expr):
    """`[a, b, ?c]`: (value, optional) in order."""

    items: tuple[tuple[Expr, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapExpr(Expr):
    """`{k: v}`: (key, value, optional) in order."""

    entries: tuple[tuple[Expr, Expr, bool], ...]


class Fold(Enum):
    """What a comprehension does with its elements. The first four are CEL's macros."""

    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    FILTER = "filter"
    MAP = "map"
    TRANSFORM_LIST = "transformList"
    TRANSFORM_MAP = "transformMap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comprehension(Expr):
    """A macro over a list (or a map's keys). `condition` is map's test, `body` what is collected or tested.

    `variables` holds one name, or two for the two-variable forms. When the source is a list of pods or nodes of
    the cluster the body has shape POD or NODE and the whole compiles to a grouped column operation.
    """

    fold: Fold
    source: Expr
    variables: tuple[str, ...]
    condition: Expr | None
    body: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class OptMap(Expr):
    """`o.optMap(x, e)` and, flattened, `o.optFlatMap(x, e)`."""

    operand: Expr
    variable: str
    body: Expr
    flat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A string with expressions filled in: literal pieces and expressions, in order."""

    parts: tuple[str | Expr, ...]
    span: Span
