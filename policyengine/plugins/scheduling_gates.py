"""SchedulingGates: a pod with gates in its spec stays out of the queue (KEP-3521)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from policyengine.framework.status import SUCCESS, Code, Status

NAME: Final = "SchedulingGates"


class SchedulingGates:
    """PreEnqueue alone."""

    name = NAME

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Refused while any gate is left."""
        gates = pod.shape.spec.scheduling_gates
        if not gates:
            return SUCCESS
        names = " ".join(gate.name for gate in gates)
        reason = f"waiting for scheduling gates: [{names}]"
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), NAME)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Its own gates' removal."""
        removed = ClusterEvent(Resource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (ClusterEventWithHint(removed, _own_gates_removed),)


def _own_gates_removed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    return QueueingHint.QUEUE if new is not None and new.uid == pod.uid else QueueingHint.SKIP
