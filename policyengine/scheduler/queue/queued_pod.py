"""One pending pod as its queue knows it: where it is, when it came, what refused it and how often.

The fields are kube-scheduler's `QueuedPodInfo` (framework/types.go, v1.36).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from policyengine.enum_members import direct_members

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


@direct_members
class Place(Enum):
    """Where a pending pod is. It is in exactly one place at any time."""

    NOWHERE = "nowhere"
    """Only between two places, inside one call."""
    GATED = "gated"
    """Refused by a PreEnqueue plugin."""
    HELD = "held"
    """A member of a gang that is not complete yet."""
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"
    """Popped: being evaluated, or waiting at Permit."""


@direct_members
class Strategy(Enum):
    """What an event does to a refused pod (kube-scheduler's queueingStrategy)."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


NO_PLUGINS: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False, repr=False)
class QueuedPod:
    """A pending pod in its queue. Times are in seconds on the clock that `handle` is given."""

    pod: PodInfo
    queued_at: float
    """When it entered the queue; refreshed at each failed attempt."""
    uid: str = field(init=False)
    place: Place = Place.NOWHERE
    initial_attempt_at: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    """Refusals so far; they drive the backoff."""
    error_count: int = 0
    """Consecutive errors; while there are any they drive the backoff instead."""
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    """Who refused it at the last attempt, those that said Pending included. Empty after an error."""
    pending_plugins: frozenset[str] = NO_PLUGINS
    by_candidate: bool = False
    """Whether those who refused it are a candidate's plugins, not the serving policy's."""
    gate_message: str = ""
    """Why it is gated or held, as last told."""
    expiry: float | None = None
    """The whole second in which its backoff ends; None until it is computed."""
    not_before: float = 0.0
    """The earliest end of its backoff that the API server asked for (Retry-After); 0 if it did not."""
    said: tuple[str, str] | None = None
    """Reason and message of the PodScheduled condition written last, until the watch shows the pod anew."""
    buckets: tuple[tuple[str, Hashable], ...] = ()
    """Where `UnschedulableIndex` keeps it: (plugin, signature)."""

    def __post_init__(self) -> None:
        self.uid = self.pod.uid

    def __repr__(self) -> str:
        return f"<{self.pod.namespace}/{self.pod.name} {self.place.value}>"
