"""`permit "name" [when e] { delay until timeout }` as a permit plugin.

| asked again | what the pod is told |
|---|---|
| `when` is false by now | it may be bound |
| `delay` is over | it may be bound |
| `until` holds | it may be bound |
| none of these | it waits, until the delay is over, or an event or a minute that `until` reads passes |
| `timeout` is over | it is refused (by the core) |

A `when` without a value counts as true, an `until` without one as false. A `delay` without a value refuses the pod, and
says why; a `timeout` without one counts as the longest there is, one that is not positive as nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policyengine.compiler.columns.column import Failed
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.placed import PlacedValue
from policyengine.compiler.rules.requeue_events import events_of
from policyengine.compiler.rules.texts import erred
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.reservation import MAX_PERMIT_WAIT, PERMITTED, Permission
from policyengine.framework.status import Code, Status
from policyengine.language import ir

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot


class RulePermit:
    """A permit rule of a policy."""

    def __init__(self, rule: ir.Permit, scope: Scope, source: str) -> None:
        self.name = rule.name
        self._when, self._delay, self._until, self._timeout = (
            None if expr is None else PlacedValue(expr, scope)
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
            if ask_in <= 0:
                return PERMITTED
        return Permission(Status(Code.WAIT), self._longest(place), ask_in)

    def _longest(self, place: tuple[PodInfo, str, Snapshot]) -> float:
        """Seconds that the pod may wait in all."""
        timeout = MAX_PERMIT_WAIT if self._timeout is None else self._timeout.of(*place)
        if isinstance(timeout, int):
            timeout /= 1e9
        return max(timeout, 0.0) if isinstance(timeout, float) else MAX_PERMIT_WAIT
