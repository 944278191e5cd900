"""What names mean while a policy is lowered, and which parts of a rule are computed once for all nodes (`Hoists`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import Any

import numpy as np

from policyengine.compiler.columns.column import Column, Failed, attempt, plain, single
from policyengine.compiler.columns.frame import Decision, Frame, PodFrame, Scalar, Vector
from policyengine.compiler.columns.object_fields import field_getter, scalar_binding
from policyengine.compiler.coverage import Coverage
from policyengine.compiler.lower.lets import Lets, in_order
from policyengine.language import ir
from policyengine.language.ir.ir_walk import aggregated, free_locals, key
from policyengine.language.scalar_evaluator import ABSENT, Names, Read
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
        self.own_domains: list[Vector] = []
        self.asks_of_domains = False
        """Whether a domain's answer depends on another domain's."""
        self.below: dict[tuple[str, Shape], Hoists] = {}
        """The same of the lets that are named."""
        self._places: dict[Hashable, int] = {}
        self._parts: list[Part] = []

    def hoist(self, expr: ir.Expr, scalar: Scalar) -> Vector:
        """The closure that finds the value of `expr`, whose closure is `scalar`, in the frame; constants are folded."""
        if expr.reach is Reach.CONSTANT and (isinstance(expr, ir.Const) or not free_locals(expr)):
            constant = single(attempt(scalar, Decision(_NO_POD)), expr.type)
            return lambda frame: constant
        known = key(expr)
        place = self._places.get(known)
        if place is None:
            place = self._places[known] = next(_places)
            self._parts.append((place, scalar, expr.type))
        return lambda frame: frame.hoisted[place]

    @cached_property
    def _reached(self) -> list[Hoists]:
        """Itself, and those of the lets that are named, through others too. Asked once all is lowered."""
        reached = {id(self): self}
        pending = [self]
        while pending:
            found = {id(one): one for one in pending.pop().below.values() if id(one) not in reached}
            reached |= found
            pending += found.values()
        return list(reached.values())

    @cached_property
    def domains(self) -> list[Vector]:
        """The labels whose domains the rule asks about."""
        return [label for one in self._reached for label in one.own_domains]

    @cached_property
    def follows_all(self) -> bool:
        """Whether a row may follow any other: a domain's answer depends on another domain's."""
        return any(one.asks_of_domains for one in self._reached)

    @cached_property
    def parts(self) -> dict[int, Part]:
        """The parts by their places."""
        return {part[0]: part for one in self._reached for part in one._parts}

    def columns(self, decision: Decision) -> Mapping[int, Column]:
        """The values of all parts for a decision, each as a column of all rows."""
        return {place: single(attempt(scalar, decision), type_) for place, scalar, type_ in self.parts.values()}


Part = tuple[int, Scalar, Type]
"""The place in a frame where the value of a part stands, its closure and type."""
_places = count()


class _AsNeeded(dict[int, Column]):
    """The parts of `Hoists` for a decision, each evaluated when it is first read."""

    def __init__(self, hoists: Hoists, decision: Decision) -> None:
        super().__init__()
        self._parts, self._decision = hoists.parts, decision

    def __missing__(self, place: int) -> Column:
        _, scalar, type_ = self._parts[place]
        found = self[place] = single(attempt(scalar, self._decision), type_)
        return found


Lower = Callable[[ir.Expr, "Scope", Hoists], Vector]
RowLet = tuple[Callable[[Frame], Any], Hoists]
"""A let in a frame, its column or the elements of its list; and what is hoisted from it."""


@dataclass(frozen=True)
class Scope(Names):
    """What names mean while a policy is lowered, and how its expressions become closures."""

    column: Lower = field(repr=False)
    """The column closure of an expression that differs by row, or of an aggregate over all nodes or pods."""
    lets: Lets = field(default_factory=lambda: Lets({}))
    params: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, str] = field(default_factory=dict)
    """`policy.name` and `policy.hash`."""
    holes: Mapping[int, str] = field(default_factory=dict)
    """id of an expression -> the local that holds its value, which comes from outside."""
    watch: Coverage | None = None
    """Sees what expressions evaluate to in tests of policies; None costs nothing."""
    row: Shape = Shape.NODE
    """What a row of the frame is: a node, or a pod of the cluster."""
    scalars: dict[int, tuple[ir.Expr, Scalar]] = field(default_factory=dict, repr=False, compare=False)
    """id of an expression -> the expression and its closure: what several rules name is lowered once."""
    scalar_lets: dict[str, Scalar | None] = field(default_factory=dict, repr=False, compare=False)
    """A let -> the same for its value; None for one that is no single value."""
    paths: dict[str, frozenset[Path]] = field(default_factory=dict, repr=False, compare=False)
    """A let -> what it reads; see `rules.requeue_events`."""
    row_lets: defaultdict[Shape, dict[str, RowLet]] = field(
        default_factory=lambda: defaultdict(dict), repr=False, compare=False
    )
    """What the rows of a frame are, and a let -> how it is evaluated there."""
    of_cluster: Hoists = field(default_factory=Hoists, repr=False, compare=False)
    """The parts of aggregates over all nodes or pods, which all are evaluated in the decision's own frame."""

    def of(self, row: Shape) -> Scope:
        """The same scope for frames of nodes or of pods."""
        return self if row is self.row else replace(self, row=row)

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
        over_cluster = aggregated(expr, self.lets.value) is not None
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
        # What depends on the variable of a macro has another value each time.
        is_fixed = not self.holes and not free_locals(expr)
        hoists = self.of_cluster if is_fixed else Hoists()
        vector = self.column(expr, self.of(Shape.NODE), hoists)
        is_optional = expr.type.kind is Kind.OPTIONAL

        def scalar(decision: Decision) -> Any:
            if decision.snapshot is None:
                raise EvaluationError("the cluster is not known here")
            frame = decision.frame if is_fixed else None
            if frame is None:
                frame = Frame(decision.snapshot.nodes, None, _AsNeeded(hoists, decision))
                decision.frame = frame if is_fixed else decision.frame
            with np.errstate(all="ignore"):
                value = unfailed(vector(frame).at(0))
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
        for one in in_order(name, self.lets.needs, self.scalar_lets):
            value = self.lets.value(one)
            assert value is not None
            is_single = value.shape is Shape.SCALAR and not self.lets.is_list(one)
            self.scalar_lets[one] = self._once(one, value.reach, self.closure(value)) if is_single else None
        let = self.scalar_lets[name]
        assert let is not None
        return let

    def _once(self, name: str, reach: Reach, body: Scalar) -> Scalar:
        is_deep, needs, lets = self.lets.is_deep(name), self.lets.needs, self.scalar_lets
        reads_pod_only = reach <= Reach.POD

        def let(decision: Decision) -> Any:
            memo = decision.of_pod if reads_pod_only else decision.memo
            value = memo.get(name, ABSENT)
            if value is ABSENT:
                for below in in_order(name, needs, memo)[:-1] if is_deep else ():
                    one = lets[below]
                    memo[below] = None if one is None else attempt(one, decision)
                value = memo[name] = attempt(body, decision)
            return unfailed(value)

        return let

    def let_in(
        self, name: str, hoists: Hoists, lowered: Callable[[str, Hoists], Callable[[Frame], Any]]
    ) -> Callable[[Frame], Any]:
        """A let in frames of rows: lowered once, after those it needs, by `lowered`; evaluated once for a frame."""
        lets = self.row_lets[self.row]
        for one in in_order(name, self._needs_in_rows, lets):
            own = Hoists()
            lets[one] = self._once_in_frame(one, lowered(one, own)), own
        let, hoists.below[name, self.row] = lets[name]
        return let

    def _needs_in_rows(self, name: str) -> list[str]:
        return self.lets.of_rows(name, self.row)

    def _once_in_frame(self, name: str, body: Callable[[Frame], Any]) -> Callable[[Frame], Any]:
        is_deep, needs, lets = self.lets.is_deep(name), self._needs_in_rows, self.row_lets[self.row]

        def let(frame: Frame) -> Any:
            memo = frame.memo
            found = memo.get(name)
            if found is None and isinstance(of_all := frame.of_all.get(name), Column) and frame.rows is not None:
                found = memo[name] = of_all.take(frame.rows)
            if found is None:
                for below in in_order(name, needs, memo)[:-1] if is_deep else ():
                    lets[below][0](frame)
                found = memo[name] = body(frame)
            return found

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
        found = thing.scalars.get(key)
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
