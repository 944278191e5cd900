"""What only the scheduler knows of pods: their gangs, and how long they have waited."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from policyengine.cluster.pod_info import PodInfo


class PlacedGang(NamedTuple):
    """The pods of one gang that have a node."""

    placed: Collection[str]
    """UIDs."""
    minimum: int
    """With fewer pods than this the gang does not run."""


@dataclass(frozen=True, slots=True)
class GangStatus:
    """How many members of a gang there are. `reserved`: with a reservation, not bound yet."""

    key: str
    size: int
    reserved: int
    bound: int
    min: int


class SchedulingStatus:
    """Without a scheduler, as in `explain` of a file: no pod is in a queue or belongs to a gang."""

    last_reservation = 0
    """The number of the reservation made last."""

    def queued(self, pod: PodInfo) -> tuple[float, int] | None:
        """(since when, in seconds; earlier attempts); None for a pod in no queue."""
        return None

    def gang(self, pod: PodInfo) -> GangStatus | None:
        """The pod's gang, None without one."""
        return None

    def members(self, pod: PodInfo) -> Collection[str]:
        """UIDs of all members of the pod's gang; none without one."""
        return ()

    def placed_gang(self, uid: str) -> PlacedGang | None:
        """The pod's gang, if it has one of more than one pod."""
        return None

    def placed(self) -> Iterable[str]:
        """UIDs of all pods that have a node and a gang of more than one pod."""
        return ()

    def giving_way(self, pod: PodInfo) -> Collection[str]:
        """UIDs of the pods with a node whose gang, bound in part, is to give way to the pod's gang."""
        return ()
