"""The queues of all loaded policies, as rules read them: `pod.queuedAt`, `pod.attempts`, `gang`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.cluster.pod_info import PodState
from policyengine.cluster.queue_facts import GangFacts
from policyengine.scheduler.queue.queued_pod import Place

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import ClusterView
    from policyengine.scheduler.profiles import Lanes


class LaneFacts:
    """`cluster.queue_facts.QueueFacts` of the lanes."""

    def __init__(self, lanes: Lanes, view: ClusterView) -> None:
        self._lanes = lanes
        self._view = view

    def queued(self, pod: PodInfo) -> tuple[float, int] | None:
        """Since when the pod waits, and how often it was tried before the attempt under way."""
        lane = self._lanes.get(pod.scheduler_name)
        queued = None if lane is None else lane.queue.get(pod.uid)
        if queued is None:
            return None
        return queued.queued_at, queued.attempts - (queued.place is Place.IN_FLIGHT)

    def gang(self, pod: PodInfo) -> GangFacts | None:
        """The pod's gang; placed members are reserved until the server has bound them."""
        lane = self._lanes.get(pod.scheduler_name)
        gang = None if lane is None else lane.queue.gangs.of(pod.uid)
        if gang is None:
            return None
        pods = self._view.pods
        bound = sum(1 for uid in gang.placed if uid in pods and pods[uid].state is PodState.BOUND)
        return GangFacts(gang.key, len(gang.members), len(gang.placed) - bound, bound, gang.minimum)
