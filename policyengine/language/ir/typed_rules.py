"""The rules of a policy: what refuses, ranks, holds, makes room and tells."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from policyengine.language.ir.typed_expressions import Expr, ParamRef, Template
from policyengine.language.syntax import Span


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


class Filter(Struct, frozen=True, kw_only=True):
    """A rule that refuses nodes."""

    name: str
    when: Expr | None
    requires: tuple[Require, ...]
    span: Span
    file: str = ""
    """The file of the overlay it is written in, '' for the policy's own."""


class Normalize(Enum):
    """How raw scores become 0..100."""

    NONE = "none"
    MAX = "max"
    MINMAX = "minmax"


class Score(Struct, frozen=True, kw_only=True):
    """A rule that ranks nodes. `weight` is an int: a literal, or the param it names."""

    name: str
    weight: int | ParamRef
    when: Expr | None
    normalize: Normalize
    reverse: bool
    value: Expr
    on_error: Expr | None
    span: Span
    file: str = ""
    """The file of the overlay it is written in, '' for the policy's own."""


class Gang(Struct, frozen=True, kw_only=True):
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


class Quota(Struct, frozen=True, kw_only=True):
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
    file: str = ""
    """The file of the overlay it is written in, '' for the policy's own."""


class Permit(Struct, frozen=True, kw_only=True):
    """Holds a reserved pod: for `delay`, or until `until` holds; exactly one is given. At `timeout` it is refused;
    None is kube-scheduler's longest wait. All may read the chosen node."""

    name: str
    when: Expr | None
    delay: Expr | None
    until: Expr | None
    timeout: Expr | None
    span: Span


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
