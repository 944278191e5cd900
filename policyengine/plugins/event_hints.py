"""Registers the events after which a refused pod is tried again, each with a predicate as its queueing hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint, Resource

Helps = Callable[[Any, Any, Any], bool]
"""(refused pod, old object or None, new object or None) -> whether the change may make the pod schedulable."""


def is_own_update(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    """Whether the refused pod itself changed."""
    return new is not None and new.uid == pod.uid


def on(resource: Resource, action: ActionType, helps: Helps | None = None) -> ClusterEventWithHint:
    """The registration for an event. Without `helps` every such event queues the pod."""
    if helps is None:
        return ClusterEventWithHint(ClusterEvent(resource, action))

    def hint(pod: Any, old: Any, new: Any) -> QueueingHint:
        return QueueingHint.QUEUE if helps(pod, old, new) else QueueingHint.SKIP

    return ClusterEventWithHint(ClusterEvent(resource, action), hint)
