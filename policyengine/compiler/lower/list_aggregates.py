"""Aggregates over lists of the cluster's nodes and pods: filtered, mapped, and made one value of, by columns.

What is asked of each element is lowered for all elements at once: a node element is the root `node` of a frame of
nodes, a pod element the root `victim` of a frame of pods. What a `map` made is a let of that frame. An error in a
`filter` or `map` fails the whole list, as in CEL; `exists` and `all` absorb errors as `||` and `&&` do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from typing import Any, Final

import numpy as np

from policyengine.compiler.columns import list_elements
from policyengine.compiler.columns.column import Column, Faults, Mask, first_fault
from policyengine.compiler.columns.frame import Frame, Vector
from policyengine.compiler.columns.list_elements import Found, Locate, Members, with_group_faults
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.language import ir
from policyengine.language.ir.ir_walk import aggregated, children, element_shape, free_locals, rebuilt, source_of
from policyengine.language.schema import CLUSTER_POD, NODE, attribute
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, STRING, Kind, Reach, Shape

_ROOTS: Final = {Shape.POD: (("victim",), CLUSTER_POD), Shape.NODE: (("node",), NODE)}
_numbers = count()


@dataclass(frozen=True, slots=True)
class ClusterList:
    """A list, lowered. `element`: what stands for an element in `scope`."""

    rows: Callable[[Frame], Remaining]
    """The elements that pass the filters, for the asked rows."""
    element: ir.Expr
    scope: Scope

    def then(self, vector: Vector, is_test: bool) -> Callable[[Frame], Remaining]:
        """The same after one more filter, or one more map."""
        rows = self.rows

        def remaining(frame: Frame) -> Remaining:
            rest = rows(frame)
            keep, faults = rest.keep, rest.faults
            column = vector(rest.found.elements).spread(rest.found.elements.count)
            if column.faults is not None:
                failed = column.faults if keep is None else np.where(keep, column.faults, np.uint8(0))
                faults = first_fault(faults, failed)
            if is_test:
                keep = column.values if keep is None else keep & column.values
            return Remaining(rest.found, keep, faults)

        return remaining


@dataclass(frozen=True)
class Remaining:
    """What filters left of a list. `keep`: whether each element is left, None for all. `faults`: of every element, of
    filters and maps."""

    found: Found
    keep: Mask | None
    faults: Faults | None

    @cached_property
    def kept(self) -> list_elements.Rows | None:
        """Which elements are left, None for all."""
        return None if self.keep is None else np.flatnonzero(self.keep)

    @property
    def members(self) -> Members:
        """The elements that are left."""
        return self.found.members if self.kept is None else Members(self.found.groups[self.kept], self.found.count)

    def column(self, vector: Vector) -> Column:
        """What holds for each element that is left."""
        column = vector(self.found.elements).spread(self.found.elements.count)
        return column if self.kept is None else column.take(self.kept)

    def answer(self, column: Column) -> Column:
        """What holds for each group, for the asked rows."""
        return self.found.spread(with_group_faults(column, self.found.members, self.faults))


def aggregate(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Vector | None:
    """The column closure of an aggregate over a list of the cluster; None for any other expression."""
    whole = aggregated(expr, scope.lets.value)
    if whole is None:
        return None
    hoists.asks_of_domains |= scope.lets.about(expr).domains > 1
    listed = _listed(whole, scope, hoists)
    if isinstance(expr, ir.Comprehension):
        return _tested(expr, listed, hoists)
    assert isinstance(expr, ir.Call)
    if expr.function == "@in":
        return _contained(expr, listed, scope, hoists)
    if expr.function == "size":
        return lambda frame: (rest := listed.rows(frame)).answer(Column(rest.members.sizes()))
    compute = list_elements.aggregate_of(expr.function, whole.type.args[0])
    return _computed(listed, compute, listed.scope.lower(listed.element, hoists))


def _computed(listed: ClusterList, compute: list_elements.Aggregate, element: Vector) -> Vector:
    """An aggregate of what `element` says of each element that is left."""

    def vector(frame: Frame) -> Column:
        rest = listed.rows(frame)
        return rest.answer(compute(rest.members, rest.column(element)))

    return vector


def _tested(expr: ir.Comprehension, listed: ClusterList, hoists: Hoists) -> Vector:
    """`.exists(x, e)`, `.all(x, e)`, `.exists_one(x, e)`."""
    test = listed.scope.lower(bound(expr.body, expr.variables[0], listed.element), hoists)
    return _computed(listed, _TESTS[expr.fold], test)


_TESTS: dict[ir.Fold, list_elements.Aggregate] = {
    ir.Fold.EXISTS: list_elements.exists,
    ir.Fold.ALL: list_elements.for_all,
    ir.Fold.EXISTS_ONE: list_elements.exists_one,
}


def _contained(expr: ir.Call, listed: ClusterList, scope: Scope, hoists: Hoists) -> Vector:
    """`x in list`: whether an element equals x; an x without a value fails whatever the list holds."""
    wanted = expr.args[0]
    same = ir.Call(type=BOOL, span=expr.span, shape=listed.scope.row, function="_==_", args=(listed.element, wanted))
    test, value = listed.scope.lower(same, hoists), scope.lower(wanted, hoists)
    found = _computed(listed, lambda members, tests: list_elements.exists(members, Column(tests.values)), test)
    return lambda frame: found(frame).with_faults(value(frame).faults)


# --- lists -----------------------------------------------------------------------------------------------


def _listed(expr: ir.Expr, scope: Scope, hoists: Hoists) -> ClusterList:
    if isinstance(expr, ir.LetRef):
        rows = partial(_kept_rows, let_of_rows(expr.name, scope, hoists))
        source = source_of(expr, scope.lets.value)
        assert source is not None
        return ClusterList(rows, scope.lets.elements[expr.name], scope.of(element_shape(source)))
    if isinstance(expr, ir.Comprehension):
        return _step(expr, _listed(expr.source, scope, hoists), hoists)
    shape = element_shape(expr)
    path, type_ = _ROOTS[shape]
    element = ir.Field(type=type_, span=expr.span, shape=shape, reach=expr.reach, path=path)
    locate = _source(expr, scope, hoists)
    return ClusterList(lambda frame: Remaining(locate(frame), None, None), element, scope.of(shape))


def _step(expr: ir.Comprehension, over: ClusterList, hoists: Hoists) -> ClusterList:
    test = expr.condition if expr.fold is ir.Fold.MAP else expr.body
    if test is not None:
        passes = over.scope.lower(bound(test, expr.variables[0], over.element), hoists)
        over = replace(over, rows=over.then(passes, is_test=True))
    if expr.fold is ir.Fold.FILTER:
        return over
    value = bound(expr.body, expr.variables[0], over.element)
    # What depends on the variable of a macro around it has another value each time, and no let has.
    element = value if free_locals(value) else named(f"{expr.variables[0]}#{next(_numbers)}", value, over.scope)
    return ClusterList(over.then(over.scope.lower(element, hoists), is_test=False), element, over.scope)


def named(name: str, value: ir.Expr, scope: Scope) -> ir.LetRef:
    """The value as a let nobody wrote."""
    scope.lets.add(name, value)
    return ir.LetRef(type=value.type, span=value.span, shape=value.shape, reach=value.reach, name=name)


def let_of_rows(name: str, scope: Scope, hoists: Hoists) -> Callable[[Frame], Any]:
    """A let in frames of rows: a column, or the elements of a list."""

    def lowered(one: str, own: Hoists) -> Callable[[Frame], Any]:
        value = scope.lets.value(one)
        assert value is not None
        if not scope.lets.is_list(one):
            return scope.lower(value, own)
        listed = _listed(value, scope, own)
        scope.lets.elements[one] = listed.element
        return listed.rows

    return scope.let_in(name, hoists, lowered)


def _kept_rows(let: Callable[[Frame], Any], frame: Frame) -> Remaining:
    """The elements of a list that is a let; another rule may have found them."""
    rest: Remaining = let(frame)
    elements = rest.found.elements
    if elements.hoisted is frame.hoisted:
        return rest
    return replace(rest, found=replace(rest.found, elements=elements.asked_in(frame)))


def _source(expr: ir.Expr, scope: Scope, hoists: Hoists) -> Locate:
    if isinstance(expr, ir.Call):
        member, key = expr.args
        assert isinstance(member, ir.Field)
        label = scope.lower(key, hoists)
        hoists.own_domains.append(label)
        return list_elements.domain_pods(label) if member.path[-1] == "pods" else list_elements.domain_nodes(label)
    assert isinstance(expr, ir.Field)
    if expr.path == ("node", "nominated"):
        return list_elements.nominated_pods(scope.lower(NOMINEE, hoists))
    return _SOURCES[expr.path]


_SOURCES: dict[tuple[str, ...], Locate] = {
    ("pods",): list_elements.all_pods,
    ("nodes",): list_elements.all_nodes,
    ("node", "pods"): list_elements.node_pods,
}
NOMINEE: Final = ir.Field(type=STRING, span=Span(0, 0), reach=Reach.POD, path=("pod", "nominee"))
"""The UID of the pod being placed where it is nominated to a node, else ''. No field of the schema."""


def bound(expr: ir.Expr, name: str, element: ir.Expr) -> ir.Expr:
    """The expression with a variable's value in the place of the variable; fields of a root become its paths."""
    if isinstance(expr, ir.Local):
        return element if expr.name == name else expr
    parts = children(expr)
    if not parts:
        return expr
    if isinstance(expr, ir.Comprehension) and name in expr.variables:
        return rebuilt(expr, [bound(parts[0], name, element), *parts[1:]])
    if isinstance(expr, ir.OptMap) and name == expr.variable:
        return rebuilt(expr, [bound(parts[0], name, element), parts[1]])
    return _as_path(rebuilt(expr, [bound(part, name, element) for part in parts]))


def _as_path(expr: ir.Expr) -> ir.Expr:
    if not (isinstance(expr, ir.Select) and isinstance(expr.operand, ir.Field)):
        return expr
    path = (*expr.operand.path, expr.name)
    known = attribute(path)
    if expr.operand.type.kind is not Kind.OBJECT or known is None or known.optional:
        return expr
    return ir.Field(type=known.type, span=expr.span, shape=expr.operand.shape, reach=expr.reach, path=path)


def opt_map(expr: ir.OptMap, scope: Scope, hoists: Hoists) -> Vector:
    """`o.optMap(x, e)` where e asks a list: x is a let, and e counts where o holds something."""
    content = expr.operand.type.args[0]
    value = ir.Call(
        type=content, span=expr.span, shape=expr.operand.shape, reach=expr.operand.reach, function="value",
        args=(expr.operand,),
    )  # fmt: skip
    let = named(f"{expr.variable}#{next(_numbers)}", value, scope)
    operand = scope.lower(expr.operand, hoists)
    body = scope.lower(bound(expr.body, expr.variable, let), hoists)

    def vector(frame: Frame) -> Column:
        held, result = operand(frame), body(frame)
        if held.present is None:
            return result.with_faults(held.faults)
        faults = None if result.faults is None else np.where(held.present, result.faults, np.uint8(0))
        present = held.present if result.present is None else held.present & result.present
        answer = Column(result.values, faults, present, result.dictionary)
        return answer.with_faults(held.faults)

    return vector
