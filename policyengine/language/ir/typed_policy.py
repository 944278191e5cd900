"""A policy as a whole: its names, its queue, its plugins, its rules."""

from __future__ import annotations

from typing import Literal as OneOf

from msgspec import Struct

from policyengine.language.diagnostics import Source
from policyengine.language.ir.typed_expressions import Expr, ParamRef
from policyengine.language.ir.typed_rules import (
    BindAnnotation,
    Filter,
    Gang,
    OnLog,
    OrderKey,
    Permit,
    Preempt,
    Quota,
    Score,
)
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
    disabled: tuple[str, ...]
    filters: tuple[Filter, ...]
    scores: tuple[Score, ...]
    gangs: tuple[Gang, ...]
    quotas: tuple[Quota, ...] = ()
    permits: tuple[Permit, ...] = ()
    preempt: Preempt | None = None
    logs: tuple[OnLog, ...] = ()
    annotations: tuple[BindAnnotation, ...] = ()
    tests: tuple[object, ...] = ()
    """The `test` members, checked (`ir_test`)."""
    span: Span
    source: Source
    """The file the policy is written in."""
    texts: tuple[tuple[Source, Span], ...] = ()
    """The blocks that make the policy what it is: itself, its overlays, and what their files import."""
