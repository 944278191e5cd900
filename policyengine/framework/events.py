"""Which changes may cure which rejections: registrations and hints, on top of `cluster.events`.

A plugin registers the events that can turn its verdict (`events_to_register`); a rejected pod moves only when
such an event arrives and its hint says QUEUE. Names as in kube-scheduler's framework/types.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from policyengine.cluster.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FLUSH,
    MINUTE_PASSED,
    NODE_ADD,
    NODE_DELETE,
    POLICY_REPLACED,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    UNSCHEDULED_POD_UPDATE,
    WILDCARD,
    ActionType,
    ClusterEvent,
    Resource,
)
from policyengine.cluster.pod_info import PodInfo
from policyengine.enum_members import direct_members


@direct_members
class QueueingHint(Enum):
    """A plugin's opinion on whether an event may make the pod it refused schedulable."""

    SKIP = "Skip"
    QUEUE = "Queue"


QueueingHintFn = Callable[[Any, Any, Any], QueueingHint]
"""(refused pod: PodInfo, old object or None, new object or None) -> hint. The objects are `PodInfo` for pods,
`objects.Node` for nodes, else the decoded object. Pure; an exception counts as QUEUE."""


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """A registration: the event and, where the plugin can tell more, its hint function."""

    event: ClusterEvent
    hint: QueueingHintFn | None = None


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


__all__ = [
    "ASSIGNED_POD_ADD",
    "ASSIGNED_POD_DELETE",
    "FLUSH",
    "MINUTE_PASSED",
    "NODE_ADD",
    "NODE_DELETE",
    "POLICY_REPLACED",
    "UNSCHEDULED_POD_ADD",
    "UNSCHEDULED_POD_DELETE",
    "UNSCHEDULED_POD_UPDATE",
    "WILDCARD",
    "ActionType",
    "ClusterEvent",
    "ClusterEventWithHint",
    "QueueingHint",
    "QueueingHintFn",
    "Resource",
    "is_own_update",
    "on",
]
