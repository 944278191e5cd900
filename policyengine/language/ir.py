"""The typed tree that the checker makes and everything else runs: expressions, then a policy's members.

Every expression node knows its type, its shape and its place in the text. Names are resolved: a field is a
path of the schema, a call names an overload of the function table, a let or param is a reference. Dimensions
are settled: every quantity literal is an int in its dimension's grain (millicores, bytes), every duration
nanoseconds. Immutable, without numpy and without the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal as OneOf

from policyengine.language.syntax import Span
from policyengine.language.types import Reach, Shape, Type

# --- expressions -----------------------------------------------------------------------------------------


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


# --- members ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A typed constant, overridable from outside within its bounds. Values as `Const.value`."""

    name: str
    type: Type
    default: object
    minimum: object | None = None
    maximum: object | None = None
    values: tuple[object, ...] | None = None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Let:
    """A name for an expression."""

    name: str
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderKey:
    """One key of the queue order. An error, or an absent value, sorts last unless `missing_first`."""

    value: Expr
    descending: bool
    missing_first: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queue's order and times (seconds)."""

    order: tuple[OrderKey, ...]
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    flush_after: float = 300.0
    fair_by: Expr | None = None
    fair_weights: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    """One condition of a filter. `on_error` replaces an erring condition; without it the node is refused."""

    condition: Expr
    otherwise: Template | None
    on_error: Expr | None
    evictable: bool
    """Whether an eviction could change the verdict: then the refusal is Unschedulable, else ...AndUnresolvable."""
    reads_node: bool
    """False: the pod is refused once, in PreFilter."""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A rule that refuses nodes."""

    name: str
    when: Expr | None
    requires: tuple[Require, ...]
    span: Span


class Normalize(Enum):
    """How raw scores become 0..100."""

    NONE = "none"
    MAX = "max"
    MINMAX = "minmax"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A rule that ranks nodes. `weight` is an int: a literal, or the param it names."""

    name: str
    weight: int | ParamRef
    when: Expr | None
    normalize: Normalize
    reverse: bool
    value: Expr
    on_error: Expr | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A rule that makes pods wait for company."""

    name: str
    when: Expr | None
    key: Expr
    min: Expr
    timeout: Expr
    waits: Expr | None
    span: Span


Amounts = tuple[tuple[str, int], ...]
"""(resource, amount in its grain) in the order written: `(("cpu", 40_000), ("memory", …))`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What the pods that match may use together. `when` reads only what running pods have.

    `guarantee`: what they get, by reclaiming if need be. `limit`: what they never exceed; None for no limit.
    `borrow`: whether they may use more than the guarantee; None, and an error in it, are false.
    """

    name: str
    when: Expr
    guarantee: Amounts
    limit: Amounts | None
    borrow: Expr | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """Holds a reserved pod: for `delay`, or until `until` holds; exactly one is given. At `timeout` it is refused;
    None is kube-scheduler's longest wait. All may read the chosen node."""

    name: str
    when: Expr | None
    delay: Expr | None
    until: Expr | None
    timeout: Expr | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Narrows preemption: `victims` (a bool over `victim.*` and the preemptor) says which running pods may make
    room, `order` which of them go first, `max_victims` how many at most."""

    when: Expr | None
    victims: Expr | None
    order: tuple[OrderKey, ...]
    max_victims: Expr | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLog:
    """A line to log at an extension point (`preFilter postFilter reserve permit preBind postBind …`)."""

    point: str
    when: Expr | None
    message: Template
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class BindAnnotation:
    """An annotation written with the binding."""

    key: str
    value: Template
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginUse:
    """`use Plugin weight N { args }`: arguments as plain data, checked against the plugin's schema."""

    name: str
    weight: int | ParamRef | None
    arguments: dict[str, object]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A checked policy: everything the compiler needs, and nothing it has to check again."""

    name: str
    scheduler: str
    base: OneOf["kubernetes", "filters", "none"]
    share: int
    params: tuple[Param, ...]
    lets: tuple[Let, ...]
    queue: Queue
    uses: tuple[PluginUse, ...]
    disabled: tuple[str, ...]
    filters: tuple[Filter, ...]
    scores: tuple[Score, ...]
    gangs: tuple[Gang, ...]
    quotas: tuple[Quota, ...] = ()
    permits: tuple[Permit, ...] = ()
    preempt: Preempt | None = None
    logs: tuple[OnLog, ...] = ()
    annotations: tuple[BindAnnotation, ...] = ()
    tests: tuple[object, ...] = field(default=())
    """The `test` members, checked (`ir_test`)."""
    span: Span
