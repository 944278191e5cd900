"""Rules about one pod on its chosen node: `on POINT log "…"`, `bind { annotations: {…} }`, `permit "name" { … }`.

What reads the node is lowered as for a filter and evaluated over a frame of the node's row.

A log line's `when` without a value counts as false. A part of a text that has no value shows why in its place.

| permit, asked again | what the pod is told |
|---|---|
| `when` is false by now | it may be bound |
| `delay` is over | it may be bound |
| `until` holds | it may be bound |
| none of these | it waits, until the delay is over, or an event or a minute that `until` reads passes |
| `timeout` is over | it is refused (by the core) |

A permit's `when` without a value counts as true, an `until` without one as false. A `delay` without a value refuses the
pod, and says why; a `timeout` without one counts as the longest there is, one that is not positive as nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.compiler.columns.column import Failed, Fault, attempt
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.compiler.rules.node_rule import Decisions
from policyengine.compiler.rules.requeue_events import events_of
from policyengine.compiler.rules.texts import Text, erred
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.reservation import MAX_PERMIT_WAIT, PERMITTED, Permission
from policyengine.framework.status import Code, Status
from policyengine.language import ir
from policyengine.language.types import Kind, Shape
from policyengine.language.values import optional

CLOCK_STEP = 1e-6
"""Seconds. Of the seconds since the epoch a double tells no finer ones: to be asked again sooner is to be asked now."""
_NOWHERE = Failed(Fault.FAILED, "the node is not known")


class PlacedValue:
    """An expression that may read the chosen node."""

    def __init__(self, expr: ir.Expr, scope: Scope, decisions: Decisions) -> None:
        self._hoists, self._decisions = Hoists(), decisions
        self._is_optional = expr.type.kind is Kind.OPTIONAL
        self._scalar = scope.closure(expr) if expr.shape is Shape.SCALAR else None
        self._vector = scope.lower(expr, self._hoists)

    def of(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> Any:
        """The value, or a `Failed`."""
        decision, row = self._decisions.about(pod, snapshot), snapshot.nodes.row_of.get(node_name)
        if self._scalar is not None:
            return attempt(self._scalar, decision)
        if row is None:
            return _NOWHERE
        frame = self._decisions.frame(pod, snapshot, np.array([row]), self._hoists.columns(decision))
        with np.errstate(all="ignore"):
            value = self._vector(frame).at(0)
        return optional(value) if self._is_optional and not isinstance(value, Failed) else value


class PlacedText:
    """A text whose expressions may read the chosen node; one without a value shows why in its place."""

    def __init__(self, template: ir.Template, scope: Scope, decisions: Decisions) -> None:
        self._hoists, self._decisions = Hoists(), decisions
        self._text = Text(template, scope, self._hoists)

    def of(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str:
        """The text."""
        decision, row = self._decisions.about(pod, snapshot), snapshot.nodes.row_of.get(node_name)
        if not self._text.differs or row is None:
            return self._text.of(decision)
        return self._text.at(self._decisions.frame(pod, snapshot, np.array([row]), self._hoists.columns(decision)))[0]


class RuleLog:
    """A line of a policy to log at an extension point."""

    def __init__(self, rule: ir.OnLog, scope: Scope, decisions: Decisions) -> None:
        self.point = rule.point
        self._when = None if rule.when is None else PlacedValue(rule.when, scope, decisions)
        self._text = PlacedText(rule.message, scope, decisions)

    def line(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str | None:
        """The line to log; None where the rule does not apply."""
        if self._when is not None and self._when.of(pod, node_name, snapshot) is not True:
            return None
        return self._text.of(pod, node_name, snapshot)


class RulePermit:
    """A permit rule of a policy."""

    def __init__(self, rule: ir.Permit, scope: Scope, decisions: Decisions, source: str) -> None:
        self.name = rule.name
        self._when, self._delay, self._until, self._timeout = (
            None if expr is None else PlacedValue(expr, scope, decisions)
            for expr in (rule.when, rule.delay, rule.until, rule.timeout)
        )
        self._written = "" if rule.delay is None else source[rule.delay.span.start : rule.delay.span.end]
        read = [expr for expr in (rule.when, rule.until, rule.delay) if expr is not None]
        self._events = events_of(read, scope, reads_node=False)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Derived from the schema fields that `when`, `until` and `delay` read."""
        return self._events

    def permit(self, pod: PodInfo, node_name: str, snapshot: Snapshot, waited: float) -> Permission:
        """Let the pod go, have it wait, or refuse it for a delay that has no value."""
        place = (pod, node_name, snapshot)
        if self._when is not None and self._when.of(*place) is False:
            return PERMITTED
        if self._until is not None and self._until.of(*place) is True:
            return PERMITTED
        ask_in = None
        if self._delay is not None:
            delay = self._delay.of(*place)
            if isinstance(delay, Failed):
                reason = erred(self.name, self._written, delay.detail or delay.fault.text)
                return Permission(Status(Code.UNSCHEDULABLE, (reason,)))
            ask_in = delay / 1e9 - waited
            if ask_in < CLOCK_STEP:
                return PERMITTED
        return Permission(Status(Code.WAIT), self._longest(place), ask_in)

    def _longest(self, place: tuple[PodInfo, str, Snapshot]) -> float:
        """Seconds that the pod may wait in all."""
        timeout = None if self._timeout is None else self._timeout.of(*place)
        return max(timeout / 1e9, 0.0) if isinstance(timeout, int) else MAX_PERMIT_WAIT
