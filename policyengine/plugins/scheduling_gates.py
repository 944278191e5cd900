"""The queue's plugins: PrioritySort, which orders it, and SchedulingGates, which keeps pods out of it (KEP-3521)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, is_own_update, on
from policyengine.framework.profile import by_priority
from policyengine.framework.status import SUCCESS, Code, Status

SHOWN: Final = 20
"""Gates that are named: the API server takes thousands, and pages and lists name them for each pod."""


class PrioritySort:
    """The queue order of the default profile, as a key: higher priority first, then who entered the queue first."""

    name = "PrioritySort"

    def queue_key(self, pod: PodInfo, queued_at: float) -> tuple[Any, ...]:
        """The smallest key goes first; of equal ones that which came first."""
        return by_priority(pod, queued_at)


class SchedulingGates:
    """A pod with gates in its spec stays out of the queue: PreEnqueue alone."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo, snapshot: Snapshot) -> Status:
        """Refused while any gate is left."""
        gates = pod.shape.spec.scheduling_gates
        if not gates:
            return SUCCESS
        names = " ".join(gate.name for gate in gates[:SHOWN])
        more = f" and {len(gates) - SHOWN} more" if len(gates) > SHOWN else ""
        reason = f"waiting for scheduling gates: [{names}]{more}"
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), self.name)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Its own gates' removal."""
        return (on(Resource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, is_own_update),)
