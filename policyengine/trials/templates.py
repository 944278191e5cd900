"""The nodes and pods that a scenario's templates stand for, as JSON and as objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeVar

from msgspec import structs

from policyengine.cluster.kinds import GROUP_LABEL
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import ObjectError, decode, format_time
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.workload_objects import PodGroup
from policyengine.trials.scenario import Arrival, Json, Place, ScenarioError, Template

T = TypeVar("T", Node, Pod)
ROOM: Json = {"cpu": "4", "memory": "16Gi", "pods": "110"}
"""What a node has unless the template says otherwise."""
GATE = "policyengine.io/simulated"


@dataclass(frozen=True, slots=True)
class SimulatedPod:
    """A pod that comes, and what the API does not know of it."""

    template: Template
    pod: Pod
    runs: float | None
    """Seconds from its binding to its end."""
    gang: str = ""
    """`namespace/name` of its gang."""
    again: int = 0
    """How often it came before, under other names."""

    def once_more(self, uid: str, now: float) -> SimulatedPod:
        """The pod that a controller makes in its place."""
        before = self.pod.metadata
        name = f"{before.name.removesuffix(f'-r{self.again}')}-r{self.again + 1}"
        metadata = structs.replace(before, name=name, uid=uid, creation_timestamp=format_time(now))
        return replace(self, pod=structs.replace(self.pod, metadata=metadata), again=self.again + 1)


def moments(arrival: Arrival, random: Random) -> Iterator[float]:
    """When things come, in seconds from the start; without end where neither `count` nor `until` ends them."""
    at, number = arrival.at, 0
    while at < arrival.until and (arrival.count is None or number < arrival.count):
        yield at
        number += 1
        if arrival.gap is not None:
            at += arrival.gap(random)


def numbered(name: str, number: int, count: int | None) -> str:
    """The name of the number-th of so many: the bare name where there is one alone."""
    return name if count == 1 else f"{name}-{number}"


def node_json(template: Template, number: int, now: float) -> Json:
    """The number-th node of a template."""
    given = template.given
    name = numbered(template.name, number, template.arrival.count)
    labels = {"kubernetes.io/hostname": name}
    if "zones" in given:
        labels["topology.kubernetes.io/zone"] = given["zones"][number % len(given["zones"])]
    room = {**ROOM, **given.get("allocatable", {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "creationTimestamp": format_time(now),
            "labels": {**labels, **given.get("labels", {})},
            "annotations": given.get("annotations", {}),
        },
        "spec": {"taints": given.get("taints", []), "unschedulable": given.get("unschedulable", False)},
        "status": {
            "capacity": room,
            "allocatable": dict(room),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def decoded(kind: type[T], item: Json, place: Place) -> T:
    """The node or pod that the JSON says. Raises `ScenarioError` where a template has no such fields."""
    try:
        return decode(kind, item)
    except ObjectError as error:
        raise ScenarioError(str(error), place) from None


def group_of(pod: SimulatedPod) -> PodGroup | None:
    """The PodGroup a pod's gang is made of; None where labels make it."""
    gang = pod.template.gang
    if gang is None or gang.by_labels:
        return None
    namespace, _, name = pod.gang.partition("/")
    return decode(PodGroup, {"metadata": {"name": name, "namespace": namespace}, "spec": {"minMember": gang.minimum}})


class PodMaker:
    """Makes the pods of a template, one arrival after the other; draws in that order."""

    def __init__(self, template: Template, scheduler_name: str, random: Random) -> None:
        self._template = template
        self._scheduler_name = scheduler_name
        self._random = random

    def arrival(self, number: int, uids: Iterator[int], now: float) -> list[SimulatedPod]:
        """The pods of the number-th arrival: one, or all of a gang. UIDs rise in the order of creation."""
        template, random = self._template, self._random
        name = numbered(template.name, number, template.arrival.count)
        gang = template.gang
        namespace = self._one_of(template.given.get("namespace", "default"))
        priority = self._one_of(template.given.get("priority", 0))
        made = []
        for member in range(gang.size if gang else 1):
            item = self._item(f"{name}-{member}" if gang else name, namespace, priority)
            item["metadata"] |= {"uid": uid(next(uids)), "creationTimestamp": format_time(now)}
            if gang and gang.by_labels:
                item["metadata"]["labels"] |= {"podGroup": name, "minAvailable": str(gang.minimum)}
            elif gang:
                item["metadata"]["labels"][GROUP_LABEL] = name
            runs = template.lasts(random) if template.lasts else None
            pod = decoded(Pod, item, template.place)
            made.append(SimulatedPod(template, pod, runs, f"{namespace}/{name}" if gang else ""))
        return made

    def _item(self, name: str, namespace: str, priority: int) -> Json:
        given = self._template.given
        requests = {key: self._one_of(value) for key, value in given.get("requests", {}).items()}
        resources = {"requests": requests, "limits": given.get("limits", {})}
        spec: Json = {
            "schedulerName": given.get("scheduler", self._scheduler_name),
            "priority": priority,
            "containers": [{"name": "main", "image": "main", "resources": resources}],
        }
        if given.get("gated"):
            spec["schedulingGates"] = [{"name": GATE}]
        labels, annotations = dict(given.get("labels", {})), given.get("annotations", {})
        metadata: Json = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
        if given.get("recreate"):
            # Who makes a template's pods again: a stand-in for a ReplicaSet, which is not itself in the cluster.
            about = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": self._template.name, "controller": True}
            metadata["ownerReferences"] = [about | {"uid": f"controller-{self._template.name}"}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, **given.get("spec", {})}}

    def _one_of(self, value: Any) -> Any:
        return self._random.choice(value) if isinstance(value, list) else value


def uid(number: int) -> str:
    """The UID of the number-th pod: text that rises with the number, so that equals queue as they were created."""
    return f"{number:08d}-0000-4000-8000-000000000000"
