"""What rules read of a pod that only its queue knows: since when it waits, how often it was tried, its gang."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from policyengine.cluster.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class GangFacts:
    """How far a gang is. `reserved`: members that hold a place and are not bound yet."""

    key: str
    size: int
    reserved: int
    bound: int
    min: int


class QueueFacts(Protocol):
    """Implemented by the scheduler; where there is none (`explain` of a file) nothing waits in a queue."""

    def queued(self, pod: PodInfo) -> tuple[float, int] | None:
        """(since when, in seconds; how often it was tried before); None for a pod in no queue."""

    def gang(self, pod: PodInfo) -> GangFacts | None:
        """The pod's gang, None without one."""


class NoQueue:
    """Nobody's queue."""

    def queued(self, pod: PodInfo) -> tuple[float, int] | None:
        """None: no pod is in it."""
        return None

    def gang(self, pod: PodInfo) -> GangFacts | None:
        """None: no pod has one."""
        return None
