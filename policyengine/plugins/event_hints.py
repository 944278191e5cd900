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


def on(
    resource: Resource,
    action: ActionType,
    helps: Helps | None = None,
    *,
    changed: Callable[[Any, Any], bool] | None = None,
) -> ClusterEventWithHint:
    """The registration for an event. Without `helps` every such event queues the pod.

    `changed`: (old, new) -> whether an update may help any pod; an object that comes or goes always may.
    """
    if changed is not None:
        return on(resource, action, lambda pod, old, new: old is None or new is None or changed(old, new))
    if helps is None:
        return ClusterEventWithHint(ClusterEvent(resource, action))

    def hint(pod: Any, old: Any, new: Any) -> QueueingHint:
        return QueueingHint.QUEUE if helps(pod, old, new) else QueueingHint.SKIP

    return ClusterEventWithHint(ClusterEvent(resource, action), hint)
