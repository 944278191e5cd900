"""What only the scheduler knows of pods: their gangs, and how long they have waited. Without one, nothing of either."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from policyengine.cluster.pod_info import PodInfo


class PlacedGang(NamedTuple):
    """The pods of one gang that have a node."""

    placed: Collection[str]
    """UIDs."""
    minimum: int
    """With fewer pods than this the gang does not run."""


class GangIndex(Protocol):
    """Finds the gang of a pod."""

    def of(self, uid: str) -> PlacedGang | None:
        """The pod's gang; None for a pod without one."""

    def placed(self) -> Iterable[str]:
        """UIDs of all pods that have a node and a gang."""


class NoGangs:
    """No pod belongs to a gang."""

    def of(self, uid: str) -> None:
        """None."""

    def placed(self) -> tuple[str, ...]:
        """None of them."""
        return ()


@dataclass(frozen=True, slots=True)
class GangStatus:
    """How many members of a gang there are. `reserved`: with a reservation, not bound yet."""

    key: str
    size: int
    reserved: int
    bound: int
    min: int


class QueueStatus(Protocol):
    """What rules read of a pod in the queue."""

    def queued(self, pod: PodInfo) -> tuple[float, int] | None:
        """(since when, in seconds; earlier attempts); None for a pod in no queue."""

    def gang(self, pod: PodInfo) -> GangStatus | None:
        """The pod's gang, None without one."""


class NoQueue:
    """No pod is in a queue, as in `explain` of a file."""

    def queued(self, pod: PodInfo) -> tuple[float, int] | None:
        """None."""
        return None

    def gang(self, pod: PodInfo) -> GangStatus | None:
        """None."""
        return None
