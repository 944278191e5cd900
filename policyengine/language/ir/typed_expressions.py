"""Typed expressions: names resolved, overloads chosen, dimensions settled."""

from __future__ import annotations

from enum import Enum
from typing import Literal as OneOf

from msgspec import Struct

from policyengine.language.syntax import Span
from policyengine.language.types import Reach, Shape, Type


class Expr(Struct, frozen=True, kw_only=True, gc=False):
    """What every expression has. `reach` is the largest of its parts'."""

    type: Type
    span: Span
    shape: Shape = Shape.SCALAR
    reach: Reach = Reach.CONSTANT


class Const(Expr, frozen=True, kw_only=True):
    """A literal. cpu: int millicores; memory, storage: int bytes; duration, timestamp: int nanoseconds.

    In dynamic mode (`policyengine.evaluate`) quantities, durations and timestamps are `values.*` objects.
    """

    value: object


class Field(Expr, frozen=True, kw_only=True):
    """A field of a root of the schema, as one path: `("node", "free", "memory")`, `("pod", "labels")`.

    The path stops at the first list, map or optional; what follows is `Index`, `Select` or a call. A free
    variable of `policyengine.evaluate` is a path of one name with type dyn.
    """

    path: tuple[str, ...]


class Select(Expr, frozen=True, kw_only=True):
    """A field of a value that is not a root: of a comprehension variable, a list element, a map (`m.k`)."""

    operand: Expr
    name: str
    optional: bool = False


class Index(Expr, frozen=True, kw_only=True):
    """`list[i]`, `map[k]`, and their optional forms `[?…]`."""

    operand: Expr
    key: Expr
    optional: bool = False


class Has(Expr, frozen=True, kw_only=True):
    """`has(operand.name)`: presence, never an error for an absent field."""

    operand: Expr
    name: str


class LetRef(Expr, frozen=True, kw_only=True):
    """A `let` by its full name (`safe.x` from a library); evaluated at most once a cycle."""

    name: str


class ParamRef(Expr, frozen=True, kw_only=True):
    """A `param` by its full name."""

    name: str


class Local(Expr, frozen=True, kw_only=True):
    """A variable of an enclosing comprehension or function."""

    name: str


class Call(Expr, frozen=True, kw_only=True):
    """An overload of the function table (`functions.FUNCTIONS`), operators included (`_+_`, `_<_`, `!_`, `-_`, `@in`).

    The overload follows from the argument types; a method's target is its first argument.
    """

    function: str
    args: tuple[Expr, ...]


class Logic(Expr, frozen=True, kw_only=True):
    """`&&` or `||` of two or more, absorbing errors in either order."""

    op: OneOf["&&", "||"]
    operands: tuple[Expr, ...]


class Conditional(Expr, frozen=True, kw_only=True):
    """`condition ? then : otherwise`; only the branch taken can err."""

    condition: Expr
    then: Expr
    otherwise: Expr


class ListExpr(Expr, frozen=True, kw_only=True):
    """`[a, b, ?c]`: (value, optional) in order."""

    items: tuple[tuple[Expr, bool], ...]


class MapExpr(Expr, frozen=True, kw_only=True):
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


class Comprehension(Expr, frozen=True, kw_only=True):
    """A macro over a list (or a map's keys). `condition` is map's test, `body` what is collected or tested.

    `variables` holds one name, or two for the two-variable forms. When the source is a list of pods or nodes of
    the cluster the body has shape POD or NODE and the whole compiles to a grouped column operation.
    """

    fold: Fold
    source: Expr
    variables: tuple[str, ...]
    condition: Expr | None
    body: Expr


class OptMap(Expr, frozen=True, kw_only=True):
    """`o.optMap(x, e)` and, flattened, `o.optFlatMap(x, e)`."""

    operand: Expr
    variable: str
    body: Expr
    flat: bool = False


class Template(Struct, frozen=True, kw_only=True, gc=False):
    """A string with expressions filled in: literal pieces and expressions, in order."""

    parts: tuple[str | Expr, ...]
    span: Span
