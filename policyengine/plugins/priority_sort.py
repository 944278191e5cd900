"""PrioritySort: who is scheduled next. Higher priority first, then the pod that entered the queue first."""

from __future__ import annotations

from typing import Any

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.profile import by_priority


class PrioritySort:
    """The queue order of the default profile, as a key."""

    name = "PrioritySort"

    def queue_key(self, pod: PodInfo, queued_at: float) -> tuple[Any, ...]:
        """The smallest key goes first; of equal ones that which came first."""
        return by_priority(pod, queued_at)
