"""The cluster of a trial: what an API server would hold, as dicts, and its answers to the scheduler's requests.

Every change gives the object a new version, and comes back as the message a watch would deliver. What a server
refuses is refused: a binding of a pod that is bound, gated or being deleted, a patch of another version, a deletion
of another UID.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from policyengine.cluster.kinds import STRUCTS
from policyengine.cluster.node_objects import Node
from policyengine.cluster.object_store import ClusterObject
from policyengine.cluster.objects import decode, format_time
from policyengine.cluster.pod_objects import Pod, PodCondition
from policyengine.scheduler.actions import Bind, DeleteVictim, PatchObject, PatchPodCondition, ReadPod
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    Message,
    NodeDeleted,
    NodeObserved,
    ObjectDeleted,
    ObjectObserved,
    ObjectPatched,
    ObjectPatchFailed,
    PodDeleted,
    PodObserved,
    PodRead,
    VictimDeleted,
)

GRACE = 30.0
"""Seconds between a pod's deletion and its end, where its spec names none."""
_ADDED_TO = ("finalizers", "reservedFor")
"""The lists that the scheduler's strategic merge patches add to, or take from."""


def uid_of(pod: Pod) -> str:
    """The pod's UID; its key where it has none."""
    return pod.metadata.uid or pod.metadata.key


class TrialCluster:
    """Nodes by name, pods by UID, other objects by kind and key."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.objects: dict[str, dict[str, ClusterObject]] = {}
        self._version = 0

    def pod(self, name: str, namespace: str = "default") -> Pod | None:
        """The pod of a name, None where there is none."""
        return next(
            (one for one in self.pods.values() if one.metadata.name == name and one.metadata.namespace == namespace),
            None,
        )

    # --- what happens in it ---------------------------------------------------------------------------

    def apply(self, message: Message) -> Message:
        """Take in what a message says has changed; the same message about the object at its new version. Messages
        that are about no object pass unchanged."""
        match message:
            case NodeObserved(node):
                self.nodes[node.metadata.name] = new = self._versioned(node)
                return NodeObserved(new)
            case NodeDeleted(name):
                self.nodes.pop(name, None)
            case PodObserved(pod):
                return self._put(pod)
            case PodDeleted(namespace, name, uid):
                found = self.pods.get(uid) if uid else self.pod(name, namespace)
                if found is not None:
                    del self.pods[uid_of(found)]
            case ObjectObserved(kind, item):
                return self._put_object(kind, item)
            case ObjectDeleted(kind, namespace, name):
                self.objects.get(kind, {}).pop(f"{namespace}/{name}" if namespace else name, None)
        return message

    def _versioned(self, item: Any) -> Any:
        self._version += 1
        return replace(item, metadata=replace(item.metadata, resource_version=str(self._version)))

    def _put(self, pod: Pod) -> PodObserved:
        self.pods[uid_of(pod)] = new = self._versioned(pod)
        return PodObserved(new)

    def _put_object(self, kind: str, item: object) -> ObjectObserved:
        new: ClusterObject = self._versioned(item)
        self.objects.setdefault(kind, {})[new.metadata.key] = new
        return ObjectObserved(kind, new)

    # --- what it answers ------------------------------------------------------------------------------

    def bind(self, asked: Bind, now: float) -> Sequence[Message]:
        """The binding's outcome, and the pod as it is then."""
        pod = self.pods.get(asked.uid)
        if pod is None:
            return [BindFailed(asked.uid, BindFailure.NOT_FOUND, f'pods "{asked.name}" not found')]
        if pod.spec.node_name or pod.spec.scheduling_gates or pod.metadata.deletion_timestamp is not None:
            message = f'pod "{asked.name}" is assigned, gated or being deleted'
            return [BindFailed(asked.uid, BindFailure.CONFLICT, message)]
        metadata = replace(pod.metadata, annotations={**pod.metadata.annotations, **asked.annotations})
        spec = replace(pod.spec, node_name=asked.node)
        placed = PodCondition(type="PodScheduled", status="True", last_transition_time=format_time(now))
        bound = replace(pod, metadata=metadata, spec=spec, status=_with_condition(pod, placed, nominated=""))
        return [BindSucceeded(asked.uid), self._put(bound)]

    def set_condition(self, asked: PatchPodCondition, now: float) -> Sequence[Message]:
        """The pod with its PodScheduled condition and nominated node as asked; nothing where it is gone or bound."""
        pod = self.pods.get(asked.uid)
        if pod is None or pod.spec.node_name:
            return []
        said = PodCondition(
            type="PodScheduled",
            status="False",
            reason=asked.reason,
            message=asked.message,
            last_transition_time=format_time(now),
            observed_generation=asked.observed_generation,
        )
        status = _with_condition(pod, said if asked.reason else None, asked.nominated_node_name)
        return [self._put(replace(pod, status=status))]

    def delete(self, asked: DeleteVictim, now: float) -> Sequence[Message]:
        """The victim goes at once."""
        answer, *shown = self.terminate(asked, now)
        self.pods.pop(asked.uid, None)
        return [answer, *shown, PodDeleted(asked.namespace, asked.name, asked.uid)]

    def terminate(self, asked: DeleteVictim, now: float) -> Sequence[Message]:
        """The victim is being deleted: it goes when its grace ends, and whoever plays the kubelet says so."""
        pod = self.pods.get(asked.uid)
        if pod is None:
            return [VictimDeleted(asked, was_there=False)]
        grace = pod.spec.termination_grace_period_seconds
        end = format_time(now + (GRACE if grace is None else grace))
        why = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", asked.message, format_time(now))
        metadata = replace(pod.metadata, deletion_timestamp=end)
        going = replace(pod, metadata=metadata, status=_with_condition(pod, why, nominated=None))
        return [VictimDeleted(asked), self._put(going)]

    def read(self, asked: ReadPod) -> Sequence[Message]:
        """The pod as it is."""
        pod = self.pods.get(asked.uid)
        return [PodDeleted(asked.namespace, asked.name, asked.uid) if pod is None else PodRead(asked, pod)]

    def patch(self, asked: PatchObject) -> Sequence[Message]:
        """The object after the patch, if it still is the one that was decided about."""
        wanted = asked.patch
        if wanted.kind == "Pod":
            return [ObjectPatched(asked, "")]  # no decision reads what is written there
        if wanted.verb == "POST":
            made = {**wanted.patch, "metadata": {**cast(Any, wanted.patch["metadata"]), "uid": f"made {wanted.key}"}}
            shown = self._put_object(wanted.kind, decode(STRUCTS[wanted.kind], made))
            return [ObjectPatched(asked, self.objects[wanted.kind][wanted.key].metadata.resource_version), shown]
        item = self.objects.get(wanted.kind, {}).get(wanted.key)
        if item is None:
            return [ObjectPatchFailed(asked, BindFailure.NOT_FOUND, f"{wanted.kind} `{wanted.key}` not found")]
        version = "" if wanted.strategic else wanted.resource_version
        known = (wanted.uid or item.metadata.uid, version or item.metadata.resource_version)
        if (item.metadata.uid, item.metadata.resource_version) != known:
            return [ObjectPatchFailed(asked, BindFailure.CONFLICT, f"{wanted.kind} `{wanted.key}` has changed")]
        if wanted.verb == "DELETE":
            del self.objects[wanted.kind][wanted.key]
            return [ObjectPatched(asked, ""), ObjectDeleted(wanted.kind, wanted.namespace, wanted.name)]
        changed = merged(msgspec.to_builtins(item), wanted.patch, wanted.strategic)
        shown = self._put_object(wanted.kind, decode(STRUCTS[wanted.kind], changed))
        return [ObjectPatched(asked, self.objects[wanted.kind][wanted.key].metadata.resource_version), shown]


def _with_condition(pod: Pod, condition: PodCondition | None, nominated: str | None) -> Any:
    others = tuple(one for one in pod.status.conditions if condition is None or one.type != condition.type)
    conditions = others if condition is None else (*others, condition)
    node = pod.status.nominated_node_name if nominated is None else nominated
    return replace(pod.status, conditions=conditions, nominated_node_name=node)


def merged(target: object, patch: Mapping[str, object], strategic: bool = False) -> dict[str, object]:
    """The object with a patch applied: RFC 7386; a strategic one adds to lists, and takes elements out by their UID."""
    made = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        elif strategic and name in _ADDED_TO:
            elements = cast(list[Any], value)
            gone = {one["uid"] for one in elements if "$patch" in one}
            kept = [one for one in cast(Any, made.get(name, ())) if not gone or one["uid"] not in gone]
            made[name] = kept + [one for one in elements if "$patch" not in one and one not in kept]
        else:
            made[name] = merged(made.get(name), value, strategic) if isinstance(value, Mapping) else value
    return made
