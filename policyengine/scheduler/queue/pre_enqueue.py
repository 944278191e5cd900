"""May a pod enter the queue? PreEnqueue plugins first, then the gangs.

Rules:
1. A pod whose spec cannot be read (`shape.problem`) stays outside until it changes.
2. PreEnqueue plugins are asked in the profile's order; the first that does not say Success gates the pod. A
   plugin that fails gates it too, and says how.
3. A member of an incomplete gang is held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policyengine.framework.profile import Profile
from policyengine.scheduler.gangs.gang import GangTable
from policyengine.scheduler.queue.deferred_work import Aftermath
from policyengine.scheduler.queue.queued_pod import Place

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


class Denial(NamedTuple):
    """Why a pod may not enter, and where it waits."""

    place: Place
    """GATED or HELD."""
    plugin: str
    """The PreEnqueue plugin; empty where no plugin's event can help."""
    message: str


class Admission:
    """The gate of one profile's queue."""

    __slots__ = ("_aftermath", "_pre_enqueue", "_tells", "asked", "gangs")

    def __init__(self, profile: Profile, aftermath: Aftermath) -> None:
        self._aftermath = aftermath
        self._pre_enqueue = profile.pre_enqueue
        self._tells = any(rule.point == "preEnqueue" for rule in profile.logs)
        self.asked: list[PodInfo] = []
        """The pods that came to the gate, where the profile logs that; whoever logs it empties it."""
        self.gangs = GangTable(profile.gangs, aftermath)

    def denial(self, pod: PodInfo) -> Denial | None:
        """Why the pod may not enter; None when it may."""
        if self._tells:
            self.asked.append(pod)
            self._aftermath.is_due = True
        problem = pod.shape.problem
        if problem is not None:
            return Denial(Place.GATED, "", problem)
        for plugin in self._pre_enqueue:
            try:
                status = plugin.pre_enqueue(pod)
            except Exception as failure:
                return Denial(Place.GATED, plugin.name, f'running PreEnqueue plugin "{plugin.name}": {failure}')
            if not status.is_success:
                return Denial(Place.GATED, plugin.name, status.message)
        held = self.gangs.hold_message(pod.uid)
        return Denial(Place.HELD, "", held) if held else None
