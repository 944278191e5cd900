"""What the core asks to be done: actions, in the imperative. What comes of them returns as messages.

Actions carry names and texts, so that the runner needs no knowledge of the core's tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from policyengine.framework.reservation import ObjectPatch


class Action(msgspec.Struct, frozen=True):
    """Something that the core asks for."""


class Named(msgspec.Struct, frozen=True):
    """The pod that an action is about, or another object."""

    uid: str
    namespace: str
    name: str


class Bind(Named, Action, frozen=True):
    """Create the binding of a pod to a node."""

    node: str
    policy_hash: str
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    extender: int | None = None
    """The number of the extender that is to bind it; None for the API server."""


POST_FILTERED: Final = -1
"""The decision of a write that PostFilter asked for."""


class PatchObject(Action, frozen=True):
    """Change an object before a pod is bound; answer with `ObjectPatched` or `ObjectPatchFailed`."""

    uid: str
    """The pod's."""
    decision: int
    """Tells a pod's attempts apart."""
    plugin: str
    """The PreBind plugin that asks for it."""
    patch: ObjectPatch


class PatchPodCondition(Named, Action, frozen=True):
    """Set the pod's PodScheduled condition to False, and its nominated node where one is named. Without a reason only
    the latter."""

    reason: str
    """`Unschedulable`, `SchedulerError` or `SchedulingGated`; "" leaves the condition alone."""
    message: str
    observed_generation: int = 0
    nominated_node_name: str | None = None
    """None leaves the field alone, an empty string clears it."""


class RecordEvent(Named, Action, frozen=True):
    """Write an Event about a pod, worded as kube-scheduler words it, or about another object."""

    resource_version: str
    type: str
    """`Normal` or `Warning`."""
    reason: str
    """`Scheduled`, `FailedScheduling`, `Preempted`."""
    action: str
    """`Binding`, `Scheduling`, `Preempting`."""
    note: str
    scheduler_name: str
    kind: str = "Pod"
    api_version: str = "v1"
    node: str = ""
    """The node that it is about as well."""
    policy: str = ""
    """The policy that decided, as `NAME@HASH`, the hash's first 12 characters; "" where none did."""


class DeleteVictim(Named, Action, frozen=True):
    """Mark a pod as one that has to go (condition DisruptionTarget), then delete it, if it still is the one with
    this UID; answer with `VictimDeleted` or `VictimNotDeleted`."""

    preemptor: str
    """UID of the pod that needs the room; "" where a binding of ours does not hold (`binding.verification`)."""
    message: str
    """The condition's."""
    observed_generation: int
    event: RecordEvent
    """What is to be said once it is deleted; the core says it."""
    reason: str = "PreemptionByScheduler"
    """The condition's."""
    resource_version: str = ""
    """The version at which it was decided; it is left alone at any other one. "" for whichever it has."""


class AskExtenders(Named, Action, frozen=True):
    """Ask extenders about the nodes that fit a pod; answer with `ExtendersAnswered`."""

    number: int
    """Tells questions apart."""
    extenders: tuple[int, ...]
    """Whom: their numbers in the configuration, in the order in which each filters what the one before let through."""
    nodes: tuple[str, ...]


class NodeVictims(msgspec.Struct, frozen=True):
    """Who would have to leave a node."""

    pods: tuple[str, ...]
    """UIDs, the most important first."""
    violations: int
    """How many of them break a disruption budget."""


class AskAboutVictims(Named, Action, frozen=True):
    """Ask extenders on which nodes room may be made for a pod that fits nowhere; answer with `VictimsAnswered`."""

    number: int
    """Tells questions apart."""
    extenders: tuple[int, ...]
    """Whom: each is asked about what the one before left."""
    victims: Mapping[str, NodeVictims]
    """By node."""
    pods: Mapping[str, Mapping[str, tuple[str, str]]]
    """Node -> UID -> (namespace, name): who stands there, or would have to leave elsewhere with those who do."""


class ReadPod(Named, Action, frozen=True):
    """Read one pod from the server, as it is and not as a cache knows it; answer with `PodRead`, `PodDeleted` or
    `ReadPodFailed`."""

    asked_at: float = 0.0
    """When that was, in seconds: what the answer shows is not older."""


class ReadNodePods(Action, frozen=True):
    """Read the pods of a node from the server, as they are and not as a cache knows them; answer with `NodePodsRead` or
    `ReadNodePodsFailed`."""

    node: str


class Log(Named, Action, frozen=True):
    """Say a line of a policy's (`on POINT log "…"`) where the program's log goes."""

    point: str
    """The extension point, as the policy names it."""
    node: str
    """The chosen node; "" before the choice."""
    message: str
    policy_hash: str
