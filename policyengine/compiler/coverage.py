"""What the tests of a policy have seen of it: which way each condition went, which branch was taken.

A `Coverage` watches the closures of the real compiled policy (`Scope.watch`); there is no second evaluator. It knows
the expressions of one checked tree by identity, so that a policy compiled several times, with other params, is covered
by all of it together. What stands in one place of the text is one point: the body of a function is, wherever it is
called.

| point | outcomes to be seen |
|---|---|
| `when` of a rule, `borrow` of a quota, `until` of a permit | true, false |
| `when` and `victims` of `preempt` | true, false |
| `require` | holds, refuses |
| filter of several requires | passes a node, refuses one |
| operand of `&&` or `||`, condition of `?:` | true, false |
| `on error` | taken |
| score | evaluated |

What reads only params and literals is decided when the policy loads, and is no point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policyengine.compiler.columns.column import Column
from policyengine.compiler.columns.frame import Decision, Frame, Scalar, Vector
from policyengine.language import ir
from policyengine.language.ir.ir_walk import expressions_in, walk
from policyengine.language.syntax import Span
from policyengine.language.types import BOOL, Reach

_TRUTH = ("true", "false")
_REQUIRE = ("holds", "refuses")

Place = tuple[str, int, int, tuple[str, ...]]
"""File, start, end and outcomes."""


@dataclass(slots=True, eq=False)
class Point:
    """One thing of a policy that tests should see, and how much of it they saw."""

    what: str
    """`when of filter "x"`, ``operand of `&&` ``, …"""
    span: Span
    outcomes: tuple[str, ...]
    file: str = ""
    """The file of the overlay or library it stands in, '' for the policy's own."""
    seen: set[str] = field(default_factory=set)

    @property
    def missing(self) -> tuple[str, ...]:
        """The outcomes never seen, in order."""
        return tuple(outcome for outcome in self.outcomes if outcome not in self.seen)


class Coverage:
    """The points of one policy; a `frame.Watch`. Notes only while `active`: lowering evaluates constants too."""

    def __init__(self, policy: ir.Policy) -> None:
        self.policy = policy
        self.active = False
        self._filters: dict[str, Point] = {}
        self._places: dict[Place, Point] = {}
        self._points: dict[int, list[Point]] = {}
        """id of an expression -> its points."""
        for rule in policy.filters:
            if len(rule.requires) > 1 and any(require.reads_node for require in rule.requires):
                seen = ("passes a node", "refuses one")
                self._filters[rule.name] = Point(f'filter "{rule.name}"', rule.span, seen, rule.file)
        for what, whole, outcomes, file in _whole(policy):
            self._add(what, whole, outcomes, file)
        for expr, file in _everything(policy):
            for part in walk(expr):
                self._inside(part, file)

    @property
    def points(self) -> list[Point]:
        """All points, in the order of the text."""
        found = [*self._places.values(), *self._filters.values()]
        return sorted(found, key=lambda point: (point.file, point.span.start, point.span.end))

    def outcomes(self) -> tuple[int, int]:
        """(outcomes seen, outcomes there are)."""
        points = self.points
        return sum(len(point.seen) for point in points), sum(len(point.outcomes) for point in points)

    def filtered(self, rule: str, passed: bool, refused: bool) -> None:
        """A filter ran: whether it let a node pass, whether it refused one."""
        point = self._filters.get(rule)
        if point is not None:
            point.seen |= {outcome for outcome, seen in zip(point.outcomes, (passed, refused), strict=True) if seen}

    # --- the watch ------------------------------------------------------------------------------------

    def scalar(self, expr: ir.Expr, closure: Scalar) -> Scalar:
        """Notes the value where the expression is a point."""
        points = self._points.get(id(expr))
        if points is None:
            return closure

        def noted(decision: Decision) -> Any:
            value = closure(decision)
            if self.active:
                _note(points, value is True, value is False)
            return value

        return noted

    def vector(self, expr: ir.Expr, closure: Vector) -> Vector:
        """Notes the column's values where the expression is a point."""
        points = self._points.get(id(expr))
        if points is None:
            return closure

        def noted(frame: Frame) -> Column:
            column = closure(frame)
            if self.active and frame.count:
                _note(points, *_truths(column)) if expr.type == BOOL else _note(points, False, False)
            return column

        return noted

    # --- finding the points ---------------------------------------------------------------------------

    def _add(self, what: str, expr: ir.Expr | None, outcomes: tuple[str, ...], file: str) -> None:
        if expr is None or (len(outcomes) > 1 and expr.reach is Reach.CONSTANT):
            return
        place = (file, expr.span.start, expr.span.end, outcomes)
        point = self._places.setdefault(place, Point(what, expr.span, outcomes, file))
        own = self._points.setdefault(id(expr), [])
        if point not in own:
            own.append(point)

    def _inside(self, part: ir.Expr, file: str) -> None:
        if isinstance(part, ir.Logic):
            for operand in part.operands:
                self._add(f"operand of `{part.op}`", operand, _TRUTH, file)
        elif isinstance(part, ir.Conditional):
            self._add("condition of `?:`", part.condition, _TRUTH, file)


def _whole(policy: ir.Policy) -> Iterator[tuple[str, ir.Expr | None, tuple[str, ...], str]]:
    """The points that are expressions of rules as a whole."""
    for name, parts in _CONDITIONS.items():
        for rule in getattr(policy, name):
            said = f"`on {rule.point}`" if isinstance(rule, ir.OnLog) else f'{name[:-1]} "{rule.name}"'
            for part in parts:
                yield f"`{part}` of {said}", getattr(rule, part), _TRUTH, _file(rule)
    for filter_ in policy.filters:
        for require in filter_.requires:
            yield f'`require` of filter "{filter_.name}"', require.condition, _REQUIRE, filter_.file
            yield f'`on error` of filter "{filter_.name}"', require.on_error, ("taken",), filter_.file
    for score in policy.scores:
        yield f'score "{score.name}"', score.value, ("evaluated",), score.file
        yield f'`on error` of score "{score.name}"', score.on_error, ("taken",), score.file
    if policy.preempt is not None:
        yield "`when` of preempt", policy.preempt.when, _TRUTH, ""
        yield "`victims` of preempt", policy.preempt.victims, _TRUTH, ""


_CONDITIONS = {"filters": ("when",), "scores": ("when",), "gangs": ("when",), "quotas": ("when", "borrow")}
_CONDITIONS |= {"permits": ("when", "until"), "logs": ("when",)}
"""The conditions of rules."""


def _everything(policy: ir.Policy) -> Iterator[tuple[ir.Expr, str]]:
    """Every expression of the rules, in which there may be operands and conditions, with its file."""
    for name in ("lets", "annotations", *_CONDITIONS):
        for member in getattr(policy, name):
            yield from ((expr, _file(member)) for expr in expressions_in(member))
    yield from ((expr, "") for member in (policy.queue, policy.preempt) for expr in expressions_in(member))


def _file(rule: Any) -> str:
    return getattr(rule, "file", "")


def _note(points: list[Point], true: bool, false: bool) -> None:
    for point in points:
        if len(point.outcomes) == 1:
            point.seen.add(point.outcomes[0])
        else:
            point.seen |= {outcome for outcome, seen in zip(point.outcomes, (true, false), strict=True) if seen}


def _truths(column: Column) -> tuple[bool, bool]:
    """Whether a row is true, whether one is false; rows that failed are neither."""
    good = True if column.faults is None else column.faults == 0
    values = column.values
    return bool(np.any(values & good)), bool(np.any(np.logical_not(values) & good))
