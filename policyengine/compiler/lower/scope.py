"""What names mean while a policy is lowered, and which parts of a rule are computed once for all nodes (`Hoists`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from policyengine.compiler.columns.column import Column, Failed, attempt, single
from policyengine.compiler.columns.frame import Decision, Frame, PodFrame, Scalar, Vector
from policyengine.compiler.columns.kernels import SCALAR_KERNELS
from policyengine.compiler.columns.object_fields import Amounts, entry, field_getter, scalar_binding
from policyengine.compiler.coverage import Coverage
from policyengine.language import ir
from policyengine.language.evaluator import ABSENT, Names, Read
from policyengine.language.ir.ir_walk import aggregated, children, free_locals, key
from policyengine.language.schema import attribute
from policyengine.language.types import Kind, Reach, Shape, Type
from policyengine.language.values import EvaluationError, Optional, optional


@dataclass(frozen=True, slots=True)
class Part:
    """One hoisted expression."""

    scalar: Scalar
    type: Type

    def column(self, decision: Decision) -> Column:
        """Its value as a column of all rows."""
        return single(attempt(self.scalar, decision), self.type)


_NOBODY: Any = None
"""The pod of what depends on none."""


class Hoists:
    """Collects the hoisted parts of one rule while it is lowered."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.domains: list[Vector] = []
        """The labels whose domains the rule asks about."""
        self.follows_all = False
        """Whether a row may follow any other: a domain's answer depends on another domain's."""
        self._places: dict[Hashable, int] = {}

    def hoist(self, expr: ir.Expr, scalar: Scalar) -> Vector:
        """The closure that finds the value of `expr`, whose closure is `scalar`, in the frame; constants are folded."""
        part = Part(scalar, expr.type)
        if expr.reach is Reach.CONSTANT and (isinstance(expr, ir.Const) or not free_locals(expr)):
            constant = part.column(Decision(_NOBODY))
            return lambda frame: constant
        place = self._place(expr, part)
        return lambda frame: frame.hoisted[place]

    def _place(self, expr: ir.Expr, part: Part) -> int:
        place = self._places.setdefault(key(expr), len(self.parts))
        if place == len(self.parts):
            self.parts.append(part)
        return place

    def columns(self, decision: Decision) -> tuple[Column, ...]:
        """The values of all parts for a decision, in order, as a frame wants them."""
        return tuple(part.column(decision) for part in self.parts)


def key_of(value: Any) -> Hashable:
    """A hashable stand-in for a value: equal only for values no expression can tell apart."""
    if isinstance(value, float):
        return value if value else (value, math.copysign(1.0, value))
    if isinstance(value, bool | int | str | Failed | Amounts) or value is None:
        return value
    if isinstance(value, Optional):
        return (key_of(value.content),) if value.present else ()
    if isinstance(value, Mapping):
        return tuple((name, key_of(content)) for name, content in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(key_of, value))
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value  # type: ignore[no-any-return]


Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What is read. One object says it of all that read the same."""

    paths: frozenset[Path]
    """The fields of the schema."""
    asks_domains: bool
    """Whether it asks about a domain of nodes."""
    roots: frozenset[str]
    """`pod`, `node`, `podGroup`, …"""
    changes: frozenset[str]
    """What may change it, in the schema's words: `node.label`, `assignedPod.add`."""
    is_evictable: bool
    """Whether an eviction could change it."""


Lower = Callable[[ir.Expr, "Scope", Hoists], Vector]


@dataclass(frozen=True)
class Scope(Names):
    """What names mean while a policy is lowered, and how its expressions become closures."""

    column: Lower = field(repr=False)
    """The column closure of an expression that differs by row, or of an aggregate over all nodes or pods."""
    lets: Mapping[str, ir.Let] = field(default_factory=dict)
    params: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, str] = field(default_factory=dict)
    """`policy.name` and `policy.hash`."""
    holes: Mapping[int, str] = field(default_factory=dict)
    """id of an expression -> the local that holds its value, which comes from outside."""
    watch: Coverage | None = None
    """Sees what expressions evaluate to in tests of policies; None costs nothing."""
    row: Shape = Shape.NODE
    """What a row of the frame is: a node, or a pod of the cluster."""
    scalars: dict[int, tuple[ir.Expr, Scalar]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """id of an expression -> the expression and its closure: what several rules name is lowered once."""
    readings: dict[int, tuple[ir.Expr, Reading]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Likewise what it reads."""
    functions = SCALAR_KERNELS

    def with_holes(self, holes: Mapping[int, str]) -> Scope:
        """The same scope, with other holes."""
        return replace(self, holes=holes)

    def of(self, row: Shape) -> Scope:
        """The same scope for frames of nodes or of pods."""
        return self if row is self.row else replace(self, row=row)

    def naming(self, name: str, value: ir.Expr) -> Scope:
        """The same scope with one more let."""
        return replace(self, lets={**self.lets, name: ir.Let(name=name, value=value, span=value.span)})

    def let_value(self, name: str) -> ir.Expr | None:
        """The value of a let, None without one."""
        let = self.lets.get(name)
        return None if let is None else let.value

    # --- columns ----------------------------------------------------------------------------------------

    def lower(self, expr: ir.Expr, hoists: Hoists) -> Vector:
        """The column closure of an expression of any shape; what is the same for all rows is hoisted."""
        if expr.shape is Shape.SCALAR:
            vector = hoists.hoist(expr, self.closure(expr))
        elif expr.shape is Shape.NODE and self.row is Shape.POD:
            of_node = self.column(expr, self.of(Shape.NODE), hoists)
            vector = lambda frame: _pod_frame(frame).from_nodes(of_node)  # noqa: E731
        else:
            vector = self.column(expr, self, hoists)
        return vector if self.watch is None else self.watch.vector(expr, vector)

    # --- single values ----------------------------------------------------------------------------------

    def closure(self, expr: ir.Expr) -> Scalar:
        """The closure of an expression that is the same for all rows; a hole is read from the decision's locals."""
        known = self.scalars.get(id(expr))
        if known is not None:
            return known[1]
        hole = self.holes.get(id(expr))
        if hole is not None:
            return lambda decision: unfailed(decision.locals[hole])
        over_cluster = aggregated(expr, self.let_value) is not None
        scalar = self._of_cluster(expr) if over_cluster else super().closure(expr)
        if self.watch is not None:
            scalar = self.watch.scalar(expr, scalar)
        self.scalars[id(expr)] = expr, scalar
        return scalar

    def _of_cluster(self, expr: ir.Expr) -> Scalar:
        """An aggregate over all nodes or pods, computed by columns."""
        hoists = Hoists()
        vector = self.column(expr, self.of(Shape.NODE), hoists)
        is_optional = expr.type.kind is Kind.OPTIONAL

        def scalar(decision: Decision) -> Any:
            if decision.snapshot is None:
                raise EvaluationError("the cluster is not known here")
            with np.errstate(all="ignore"):
                column = vector(Frame(decision.snapshot.nodes, None, hoists.columns(decision)))
            value = unfailed(column.at(0))
            return optional(value) if is_optional else value

        return scalar

    def field(self, expr: ir.Field) -> Scalar:
        """A path of the schema that reads no node."""
        read = scalar_binding(expr.path, self.policy)
        if expr.type.kind is Kind.OPTIONAL:
            return lambda decision: optional(read(decision))
        return read

    def let(self, name: str) -> Scalar:
        """A let, evaluated once a decision."""
        body = self.closure(self.lets[name].value)

        def let(decision: Decision) -> Any:
            value = decision.memo.get(name, ABSENT)
            if value is ABSENT:
                value = decision.memo[name] = attempt(body, decision)
            return unfailed(value)

        return let

    def param(self, name: str) -> Scalar:
        """A param, whose value is fixed when the policy loads."""
        value = self.params[name]
        return lambda decision: value

    def attribute(self, thing: Type, name: str) -> Read:
        """A field of an object of the cluster."""
        get = field_getter(thing.name, name)
        return lambda value: ABSENT if (found := get(value)) is None else found

    def entry(self, thing: Any, key: Any) -> Any:
        """A count of a resource list by its name."""
        found = entry(thing, key)
        return ABSENT if found is None else found


def _pod_frame(frame: Frame) -> PodFrame:
    assert isinstance(frame, PodFrame)
    return frame


def unfailed(value: Any) -> Any:
    """The value, unless it stands for an error."""
    if isinstance(value, Failed):
        raise EvaluationError(value.detail or value.fault.text)
    return value


def reading(expr: ir.Expr, scope: Scope) -> Reading:
    """What one expression reads."""
    known = scope.readings.get(id(expr))
    if known is None:
        known = scope.readings[id(expr)] = expr, _read(expr, scope)
    return known[1]


def _read(expr: ir.Expr, scope: Scope) -> Reading:
    paths: set[Path] = set()
    asks_domains = False
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, ir.Field):
            paths.add(part.path)
        elif isinstance(part, ir.LetRef):
            value = scope.let_value(part.name)
            if value is not None:
                let = reading(value, scope)
                paths |= let.paths
                asks_domains |= let.asks_domains
        else:
            asks_domains |= isinstance(part, ir.Call) and part.function == "domain"
            pending += children(part)
    return _reading(frozenset(paths), asks_domains)


def all_read(expressions: Iterable[ir.Expr], scope: Scope) -> Reading:
    """What several expressions read together."""
    parts = {reading(expr, scope) for expr in expressions}
    if len(parts) == 1:
        return parts.pop()
    return _reading(frozenset[Path]().union(*(part.paths for part in parts)), any(part.asks_domains for part in parts))


@lru_cache(maxsize=1024)
def _reading(paths: frozenset[Path], asks_domains: bool) -> Reading:
    known = [one for path in paths if (one := attribute(path)) is not None]
    return Reading(
        paths,
        asks_domains,
        roots=frozenset(path[0] for path in paths),
        changes=frozenset(change for one in known for change in one.changes),
        is_evictable=any(one.evictable for one in known),
    )
