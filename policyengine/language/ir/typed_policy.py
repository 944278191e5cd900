"""A policy as a whole: its names, its queue, its plugins, its rules."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Literal as OneOf

from msgspec import Struct

from policyengine.language.diagnostics import Source
from policyengine.language.ir.typed_expressions import Expr, ParamRef, Template
from policyengine.language.syntax import Span
from policyengine.language.types import Type


class Param(Struct, frozen=True, kw_only=True):
    """A typed constant, overridable from outside within its bounds. Values as `Const.value`."""

    name: str
    type: Type
    default: object
    minimum: object | None = None
    maximum: object | None = None
    values: tuple[object, ...] | None = None
    span: Span
    file: str = ""
    """The file of the overlay or library it is written in, '' for the policy's own."""


class Let(Struct, frozen=True, kw_only=True):
    """A name for an expression. One that stands nowhere, at (0, 0), was made for a call of a function."""

    name: str
    value: Expr
    span: Span
    file: str = ""
    """The file of the overlay or library it is written in, '' for the policy's own."""


class Queue(Struct, frozen=True, kw_only=True):
    """The queue's order and times (seconds)."""

    order: tuple[OrderKey, ...]
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    flush_after: float = 300.0
    fair_by: Expr | None = None
    fair_weights: tuple[tuple[str, float], ...] = ()
    written: tuple[tuple[str, Span], ...] = ()
    """The times that are written, by their fields here, with their places."""


class PluginUse(Struct, frozen=True, kw_only=True):
    """`use Plugin weight N { args }`: arguments as plain data, checked against the plugin's schema."""

    name: str
    weight: int | ParamRef | None
    arguments: dict[str, object]
    span: Span


class Policy(Struct, frozen=True, kw_only=True):
    """A checked policy: everything the compiler needs, and nothing it has to check again."""

    name: str
    scheduler: str
    base: OneOf["kubernetes", "filters", "none"]
    share: int
    params: tuple[Param, ...]
    lets: tuple[Let, ...]
    queue: Queue
    uses: tuple[PluginUse, ...]
    disabled: Mapping[str, Span]
    """Plugin -> where it is disabled."""
    filters: tuple[Filter, ...]
    scores: tuple[Score, ...]
    gangs: tuple[Gang, ...]
    quotas: tuple[Quota, ...] = ()
    permits: tuple[Permit, ...] = ()
    preempt: Preempt | None = None
    logs: tuple[OnLog, ...] = ()
    annotations: tuple[BindAnnotation, ...] = ()
    tests: tuple[object, ...] = ()
    """The `test` members, checked (`ir.test_nodes`)."""
    span: Span
    source: Source
    """The file the policy is written in."""
    texts: tuple[tuple[Source, Span], ...] = ()
    """The blocks that make the policy what it is: itself, its overlays, and what their files import."""


class OrderKey(Struct, frozen=True, kw_only=True):
    """One key of the queue order. An error, or an absent value, sorts last unless `missing_first`."""

    value: Expr
    descending: bool
    missing_first: bool
    span: Span


class Require(Struct, frozen=True, kw_only=True):
    """One condition of a filter. `on_error` replaces an erring condition; without it the node is refused."""

    condition: Expr
    otherwise: Template | None
    on_error: Expr | None
    evictable: bool
    """Whether an eviction could change the verdict: then the refusal is Unschedulable, else ...AndUnresolvable."""
    reads_node: bool
    """False: the pod is refused once, in PreFilter."""
    text: str
    """The condition as it is written."""
    span: Span


class Rule(Struct, frozen=True, kw_only=True):
    """What every rule with a name has."""

    name: str
    when: Expr | None
    """Which pods it is for; None for all."""
    span: Span
    file: str = ""
    """The file of the overlay it is written in, '' for the policy's own."""


class Filter(Rule, frozen=True, kw_only=True):
    """A rule that refuses nodes."""

    requires: tuple[Require, ...]


class Normalize(Enum):
    """How raw scores become 0..100."""

    NONE = "none"
    MAX = "max"
    MINMAX = "minmax"


class Score(Rule, frozen=True, kw_only=True):
    """A rule that ranks nodes. `weight` is an int: a literal, or the param it names; None for a tier, which counts more
    than all scores with a weight together, and than all tiers written after it."""

    weight: int | ParamRef | None
    normalize: Normalize
    reverse: bool
    value: Expr
    on_error: Expr | None


class Gang(Rule, frozen=True, kw_only=True):
    """A rule that makes a pod wait for the other members of its gang."""

    key: Expr
    min: Expr
    timeout: Expr
    waits: Expr | None
    counts_finished: bool = False
    """Whether members that have succeeded count."""
    any_scheduler: bool = False
    """Whether pods of other schedulers are members too."""


Amounts = tuple[tuple[str, Expr], ...]
"""(resource, amount in its grain) in the order written: `(("cpu", 40_000), ("memory", …))`."""


class Quota(Rule, frozen=True, kw_only=True):
    """What the pods that match may use together. `by`, `when` and the amounts read only what running pods have.

    `by`: its values are quotas of their own; a pod for which it is an empty optional is in none. `guarantee`: what they
    get, by reclaiming if need be. `limit`: what they never exceed; None for no limit. Both are worked out for the pod
    that is asked about. `borrow`: whether they may use more than the guarantee; None, and an error in it, are false.
    """

    by: Expr | None = None
    when: Expr | None
    guarantee: Amounts
    limit: Amounts | None
    borrow: Expr | None


class Permit(Rule, frozen=True, kw_only=True):
    """Holds a reserved pod: for `delay`, or until `until` holds; exactly one is given. At `timeout` it is refused;
    None is kube-scheduler's longest wait. All may read the chosen node."""

    delay: Expr | None
    until: Expr | None
    timeout: Expr | None


class Preempt(Struct, frozen=True, kw_only=True):
    """Narrows preemption: `victims` (a bool over `victim.*` and the preemptor) says which running pods may make
    room, `order` which of them go first, `max_victims` how many at most."""

    when: Expr | None
    victims: Expr | None
    order: tuple[OrderKey, ...]
    max_victims: Expr | None
    span: Span


class OnLog(Struct, frozen=True, kw_only=True):
    """A line to log at an extension point (`preFilter postFilter reserve permit preBind postBind …`)."""

    point: str
    when: Expr | None
    message: Template
    span: Span


class BindAnnotation(Struct, frozen=True, kw_only=True):
    """An annotation written with the binding."""

    key: str
    value: Template
    span: Span
