"""Reserved pods that a Permit plugin has told to wait.

Rules (kube-scheduler's waiting pods, framework/runtime/waiting_pods_map.go, v1.36):
1. A waiting pod keeps its reservation and counts as in flight.
2. At the earliest time-out among the plugins that said Wait it is refused by that plugin.
3. An event that one of these plugins registered has all Permit plugins asked again, in a cycle of its own; so has the
   passing of a minute, where one registered for that, and the time that one of them named.
4. A pod that may be bound at the moment at which its time is up is bound, if it was to be asked at that moment.
5. A gang member that all plugins let go waits here for the others, at most for the gang's timeout.

Example: at 100 s plugin A says Wait for 60 s, plugin B for 20 s. At 120 s the pod is refused by B, unless an event
that A or B registered has had both asked again before, and both let it go.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from policyengine.framework.events import ClusterEvent
from policyengine.scheduler.binding.reservation import Reservation


@dataclass(slots=True, eq=False)
class WaitingPod:
    """A pod that waits at Permit."""

    held: Reservation
    plugin: str
    """Whose time-out comes first."""
    events: tuple[ClusterEvent, ...]
    """What the plugins that said Wait registered for."""
    deadline: float
    """Seconds."""
    ask_at: float = inf
    """When to ask again though nothing happens, in seconds."""
    ask_again: bool = False
    is_permitted: bool = False
    """Whether every plugin has let it go, and only its gang is awaited."""

    def is_to_be_asked(self, now: float) -> bool:
        """Whether the plugins may say something else by now."""
        return self.ask_again or self.ask_at <= now


def next_minute(now: float) -> float:
    """When the next minute begins."""
    return 60.0 * (now // 60.0 + 1.0)


class WaitingPods(dict[str, WaitingPod]):
    """The pods that wait at Permit, by UID."""

    def add(self, waiting: WaitingPod) -> None:
        """The pod waits from now on."""
        self[waiting.held.queued.uid] = waiting

    def note(self, event: ClusterEvent) -> None:
        """Something happened: the pods whose plugins registered for it are to be asked again."""
        for waiting in self.values():
            if not waiting.ask_again:
                waiting.ask_again = any(registered.matches(event) for registered in waiting.events)

    def due(self, now: float) -> list[WaitingPod]:
        """The pods to ask again, or whose time is up."""
        return [one for one in self.values() if one.is_to_be_asked(now) or one.deadline <= now]

    def next_due(self) -> float | None:
        """When the next pod is to be asked again, or its time is up, in seconds; None when none waits."""
        times = (0.0 if one.ask_again else min(one.deadline, one.ask_at) for one in self.values())
        return min(times, default=None)
