"""One pending pod as its queue knows it: where it is, when it came, what refused it and how often.

The fields are kube-scheduler's `QueuedPodInfo` (framework/types.go, v1.36).
"""

from __future__ import annotations

from collections.abc import Hashable
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
    """Popped: being judged, or waiting at Permit."""


@direct_members
class Strategy(Enum):
    """What an event does to a refused pod (kube-scheduler's queueingStrategy)."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


NO_PLUGINS: frozenset[str] = frozenset()


class QueuedPod:
    """A pending pod in its queue. Times are in seconds on the clock that `handle` is given."""

    __slots__ = (
        "attempts",
        "buckets",
        "by_candidate",
        "error_count",
        "expiry",
        "gate_message",
        "initial_attempt_at",
        "not_before",
        "pending_plugins",
        "place",
        "pod",
        "queued_at",
        "said",
        "uid",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
    )

    def __init__(self, pod: PodInfo, now: float) -> None:
        self.pod = pod
        self.uid: str = pod.uid
        self.place = Place.NOWHERE
        self.queued_at = now
        """When it entered the queue; refreshed at each failed attempt."""
        self.initial_attempt_at: float | None = None
        self.attempts = 0
        self.unschedulable_count = 0
        """Refusals so far; they drive the backoff."""
        self.error_count = 0
        """Consecutive errors; while there are any they drive the backoff instead."""
        self.unschedulable_plugins = NO_PLUGINS
        """Who refused it at the last attempt, those that said Pending included. Empty after an error."""
        self.pending_plugins = NO_PLUGINS
        self.by_candidate = False
        """Whether those who refused it are a candidate's plugins, not the serving policy's."""
        self.gate_message = ""
        """Why it is gated or held, as last told."""
        self.expiry: float | None = None
        """The whole second in which its backoff ends; None until it is computed."""
        self.not_before = 0.0
        """The earliest end of its backoff that the API server asked for (Retry-After); 0 when it did not."""
        self.was_flushed = False
        """Whether its last move was the periodic flush."""
        self.said: tuple[str, str] | None = None
        """Reason and message of the PodScheduled condition written last, until the watch shows the pod anew."""
        self.buckets: tuple[tuple[str, Hashable], ...] = ()
        """Where the wake-up index keeps it: (plugin, signature)."""

    def __repr__(self) -> str:
        return f"<{self.pod.namespace}/{self.pod.name} {self.place.value}>"
