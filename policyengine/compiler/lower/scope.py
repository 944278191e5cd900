"""What names mean while a policy is lowered, and which parts of a rule are computed once for all nodes (`Hoists`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from policyengine.compiler.columns.column import Column, Failed, attempt, plain, single
from policyengine.compiler.columns.frame import Decision, Frame, PodFrame, Scalar, Vector
from policyengine.compiler.columns.kernels import SCALAR_KERNELS
from policyengine.compiler.columns.object_fields import entry, field_getter, scalar_binding
from policyengine.compiler.coverage import Coverage
from policyengine.language import ir
from policyengine.language.evaluator import ABSENT, Names, Read
from policyengine.language.ir.ir_walk import aggregated, free_locals, key
from policyengine.language.types import Kind, Reach, Shape, Type
from policyengine.language.values import EvaluationError, optional

Path = tuple[str, ...]
_NO_POD: Any = None
"""The pod of what depends on none."""


class Hoists:
    """Collects the parts of one rule that are the same for every node, while the rule is lowered.

    For example `node.free.cpu >= pod.requests.cpu` has one: the request, computed once for a pod.
    """

    def __init__(self) -> None:
        self.domains: list[Vector] = []
        """The labels whose domains the rule asks about."""
        self.follows_all = False
        """Whether a row may follow any other: a domain's answer depends on another domain's."""
        self._parts: list[tuple[Scalar, Type]] = []
        self._places: dict[Hashable, int] = {}

    def hoist(self, expr: ir.Expr, scalar: Scalar) -> Vector:
        """The closure that finds the value of `expr`, whose closure is `scalar`, in the frame; constants are folded."""
        if expr.reach is Reach.CONSTANT and (isinstance(expr, ir.Const) or not free_locals(expr)):
            constant = single(attempt(scalar, Decision(_NO_POD)), expr.type)
            return lambda frame: constant
        place = self._places.setdefault(key(expr), len(self._parts))
        if place == len(self._parts):
            self._parts.append((scalar, expr.type))
        return lambda frame: frame.hoisted[place]

    def columns(self, decision: Decision) -> tuple[Column, ...]:
        """The values of all parts for a decision, in order, each as a column of all rows."""
        return tuple(single(attempt(scalar, decision), type_) for scalar, type_ in self._parts)


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
    paths: dict[int, tuple[ir.Expr, frozenset[Path]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Likewise what it reads; see `rules.requeue_events`."""
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
            vector = partial(_of_their_nodes, of_node)
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

    def condition(self, expr: ir.Expr | None, *, failed: bool, absent: bool = True) -> Callable[[Decision], bool]:
        """A condition: `failed` where it has no value, `absent` where there is no expression."""
        if expr is None:
            return lambda decision: absent
        closure = self.closure(expr)

        def holds(decision: Decision) -> bool:
            value = attempt(closure, decision)
            return failed if isinstance(value, Failed) else bool(value)

        return holds

    def value(self, expr: ir.Expr | None) -> Scalar:
        """What an expression evaluates to; None where it has no value, is empty, or there is no expression."""
        if expr is None:
            return lambda decision: None
        closure = self.closure(expr)

        def value(decision: Decision) -> Any:
            found = plain(attempt(closure, decision))
            return None if isinstance(found, Failed) else found

        return value

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


def _of_their_nodes(of_node: Vector, frame: Frame) -> Column:
    """What a column of nodes says of the node of each pod of a frame of pods."""
    assert isinstance(frame, PodFrame) and frame.base is not None and frame.owners is not None
    return of_node(frame.base).take(frame.owners)


def unfailed(value: Any) -> Any:
    """The value, unless it stands for an error."""
    if isinstance(value, Failed):
        raise EvaluationError(value.detail or value.fault.text)
    return value
