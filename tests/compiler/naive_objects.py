"""What a rule can see of nodes, pods and their parts, read from the manifests in the plainest Python.

A node or pod is a `Thing`: its fields are read when they are asked for. All smaller objects are dicts by the names of
the schema, without the fields that are absent. Amounts are one dict too: `cpu`, `memory`, `storage` and counts by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any

from tests.compiler.naive_text import quantity_of, timestamp_of
from tests.compiler.naive_values import NOTHING, Nothing, NoValue, Some
from tests.compiler.worlds import NOW, REGION, ZONE, Manifest, World

Json = Mapping[str, Any]


class Thing:
    """A node or a pod of a cluster."""

    def __init__(self, manifest: Manifest, cluster: Cluster) -> None:
        self.manifest = manifest
        self.cluster = cluster
        self.metadata: Json = manifest["metadata"]
        self.spec: Json = manifest.get("spec", {})
        self.status: Json = manifest.get("status", {})
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """A field by its name in the schema."""
        if name in _CHANGING:
            return _CHANGING[name](self)
        if name not in self._read:
            self._read[name] = (POD if isinstance(self, ThePod) else NODE)[name](self)
        return self._read[name]


class ThePod(Thing):
    """A pod."""

    queued_at: int | None = None
    """When it was last queued, in nanoseconds; None for a pod that waits in no queue."""
    attempts = 0
    reserved = ""
    """The node it was given and is not bound to yet."""

    @property
    def node(self) -> str:
        return self.reserved or self.spec.get("nodeName", "")

    @cached_property
    def requests(self) -> dict[str, int]:
        found = _ZEROS | _counted(self.spec, "requests")
        return {name: found[name] for name in (*_ZEROS, *(one for one in found if one not in _ZEROS))}


class TheNode(Thing):
    """A node."""

    @property
    def name(self) -> str:
        return self.metadata["name"]

    @property
    def pods(self) -> list[ThePod]:
        return [pod for pod in self.cluster.pods if pod.node == self.name]


class Cluster:
    """Everything there is, at one moment."""

    def __init__(self, manifests: list[Manifest], now: int = NOW) -> None:
        self.now = now
        self.asking: ThePod | None = None
        """The pod that is being placed."""
        self.nodes = [TheNode(one, self) for one in manifests if one["kind"] == "Node"]
        pods = [ThePod(one, self) for one in manifests if one["kind"] == "Pod"]
        self.ended = [pod for pod in pods if pod.status.get("phase") in ("Failed", "Succeeded")]
        self.pods = [pod for pod in pods if pod not in self.ended]
        self.namespaces = {one["metadata"]["name"]: one["metadata"] for one in manifests if one["kind"] == "Namespace"}
        self.groups = [one for one in manifests if one["kind"] == "PodGroup"]

    @classmethod
    def of(cls, world: World, *more: Manifest) -> Cluster:
        return cls([*world.manifests(), *more])

    def pod(self, uid: str) -> ThePod:
        return next(pod for pod in self.pods if pod.metadata["uid"] == uid)

    def group_of(self, pod: ThePod) -> Some | Nothing:
        """The PodGroup object that a pod names."""
        native = pod.spec.get("schedulingGroup") is not None
        for one in self.groups:
            is_native = one["apiVersion"].startswith("scheduling.k8s.io/")
            named = pod["podGroup"] == Some(one["metadata"]["name"])
            if named and is_native == native and one["metadata"]["namespace"] == pod["namespace"]:
                return Some(_group(one, is_native))
        return NOTHING

    def group_named(self, namespace: str, name: str) -> Some | Nothing:
        """The PodGroup object of that name, Kubernetes' own before the other."""
        for is_native in (True, False):
            for one in self.groups:
                known = one["metadata"]["namespace"], one["metadata"]["name"]
                if known == (namespace, name) and one["apiVersion"].startswith("scheduling.k8s.io/") == is_native:
                    return Some(_group(one, is_native))
        return NOTHING


# --- amounts -------------------------------------------------------------------------------------------------

_NAMES = {"ephemeral-storage": "storage"}


def _exact(written: Json) -> dict[str, Fraction]:
    found = {_NAMES.get(name, name): quantity_of(text) for name, text in written.items() if name != "pods"}
    return {name: amount for name, amount in found.items() if amount is not None}


def _in_grain(exact: Mapping[str, Fraction]) -> dict[str, int]:
    """Millicores, bytes and counts, rounded up."""
    return {name: math.ceil(amount * 1000 if name == "cpu" else amount) for name, amount in exact.items()}


def _plus(a: Mapping[str, Fraction], b: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: a.get(name, Fraction(0)) + b.get(name, Fraction(0)) for name in {**a, **b}}


def _counted(spec: Json, what: str) -> dict[str, int]:
    """What a pod asks for or is limited to in all: the larger of what runs together and of what starts first."""
    total: dict[str, Fraction] = {}
    for container in spec["containers"]:
        total = _plus(total, _exact(container.get("resources", {}).get(what, {})))
    beside: dict[str, Fraction] = {}
    peaks: list[dict[str, Fraction]] = []
    for container in spec.get("initContainers", ()):
        amounts = _exact(container.get("resources", {}).get(what, {}))
        if container.get("restartPolicy") == "Always":
            total, beside = _plus(total, amounts), _plus(beside, amounts)
        else:
            peaks.append(_plus(beside, amounts))
    for peak in peaks:
        total = {name: max(total.get(name, Fraction(0)), peak.get(name, Fraction(0))) for name in {**total, **peak}}
    overhead = _exact(spec.get("overhead", {}))
    if what == "limits":
        overhead = {name: amount for name, amount in overhead.items() if total.get(name)}
    return _in_grain(_plus(total, overhead))


_ZEROS = {"cpu": 0, "memory": 0, "storage": 0}


def _limits(pod: ThePod) -> dict[str, int]:
    found = _counted(pod.spec, "limits")
    return {name: amount for name, amount in found.items() if amount or name not in _ZEROS}


def _quality(pod: ThePod) -> int:
    """0 BestEffort, 1 Burstable, 2 Guaranteed."""
    totals: dict[str, dict[str, Fraction]] = {"requests": {}, "limits": {}}
    all_limited = True
    for container in (*pod.spec["containers"], *pod.spec.get("initContainers", ())):
        for what, total in totals.items():
            found = _exact(container.get("resources", {}).get(what, {}))
            compute = {name: found[name] for name in ("cpu", "memory") if found.get(name)}
            totals[what] = _plus(total, compute)
            all_limited = all_limited and (what == "requests" or len(compute) == 2)
    if not totals["requests"] and not totals["limits"]:
        return 0
    return 2 if all_limited and totals["requests"] == totals["limits"] else 1


def _used(node: TheNode) -> dict[str, int]:
    found = dict(_ZEROS)
    for pod in node.pods:
        for name, amount in pod.requests.items():
            found[name] = found.get(name, 0) + amount
    return found


def _of_node(what: str) -> Callable[[Thing], dict[str, int]]:
    """`capacity allocatable used free`: an entry is there where the node offers it or its pods ask for some."""

    def read(node: Any) -> dict[str, int]:
        used = _used(node)
        offered = _ZEROS | _in_grain(_exact(node.status.get("allocatable", {})))
        capacity = _ZEROS | _in_grain(_exact(node.status.get("capacity", {})))
        names = [name for name in {**used, **offered} if name in _ZEROS or used.get(name) or offered.get(name)]
        amounts = {"used": used, "allocatable": offered, "capacity": capacity}
        amounts["free"] = {name: offered.get(name, 0) - used.get(name, 0) for name in names}
        return {name: amounts[what].get(name, 0) for name in names}

    return read


# --- small objects -------------------------------------------------------------------------------------------


def _maybe(value: Any) -> Some | Nothing:
    return NOTHING if value is None else Some(value)


def _time(text: str | None) -> int | None:
    if text is None:
        return None
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()) * 10**9


def _owner(metadata: Json) -> Some | Nothing:
    owners = [one for one in metadata.get("ownerReferences", ()) if one.get("controller")]
    return Some({name: owners[0][name] for name in ("kind", "name", "uid")}) if owners else NOTHING


def _container(written: Json) -> dict[str, Any]:
    ports = [
        {name: port.get(name, 0 if "Port" in name else "") for name in ("name", "containerPort", "hostPort", "hostIP")}
        | {"protocol": port.get("protocol", "TCP")}
        for port in written.get("ports", ())
    ]
    amounts = {what: _in_grain(_exact(written.get("resources", {}).get(what, {}))) for what in ("requests", "limits")}
    return {"name": written["name"], "image": written["image"], "ports": ports, **amounts}


def _tagged(image: str) -> str:
    return image if ":" in image.split("/")[-1] else f"{image}:latest"


def _images(pod: ThePod) -> list[str]:
    """The images of init containers, containers and volumes, each with its tag."""
    named = [one["image"] for one in (*pod.spec.get("initContainers", ()), *pod.spec["containers"])]
    named += [one["image"]["reference"] for one in pod.spec.get("volumes", ()) if "image" in one]
    return [_tagged(image) for image in named]


def _group(written: Json, is_native: bool) -> dict[str, Any]:
    spec = written["spec"]
    if is_native:
        found = {"minMember": spec["schedulingPolicy"]["gang"]["minCount"], "scheduleTimeout": NOTHING}
        return found | {"name": written["metadata"]["name"], "minResources": {}}
    seconds = spec.get("scheduleTimeoutSeconds")
    return {
        "name": written["metadata"]["name"],
        "minMember": spec["minMember"],
        "scheduleTimeout": NOTHING if seconds is None else Some(seconds * 10**9),
        "minResources": _in_grain(_exact(spec.get("minResources", {}))),
    }


def _texts(keys: str, **defaults: str) -> Callable[[Json], dict[str, str]]:
    return lambda written: {key: written.get(key) or defaults.get(key, "") for key in keys.split()}


def _home(pod: Thing) -> Json:
    """The metadata of the pod's namespace."""
    return pod.cluster.namespaces.get(pod.metadata["namespace"], {})


def _scheduled_at(pod: Thing) -> Some | Nothing:
    conditions = [c for c in pod.status.get("conditions", ()) if c["type"] == "PodScheduled" and c["status"] == "True"]
    return _maybe(_time(conditions[-1].get("lastTransitionTime"))) if conditions else NOTHING


_TOLERATION, _TAINT = _texts("key operator value effect", operator="Equal"), _texts("key value effect")
_CONDITION = _texts("type status reason")
POD: dict[str, Callable[[Any], Any]] = {
    **{name: lambda pod, name=name: pod.metadata[name] for name in ("name", "namespace", "uid")},
    **{name: lambda pod, name=name: pod.metadata.get(name, {}) for name in ("labels", "annotations")},
    **{
        f"namespace{what}": lambda pod, what=what: _home(pod).get(what.lower(), {})
        for what in ("Labels", "Annotations")
    },
    "requests": lambda pod: pod.requests,
    "limits": _limits,
    "qos": _quality,
    "priority": lambda pod: pod.spec.get("priority", 0),
    "priorityClass": lambda pod: pod.spec.get("priorityClassName", ""),
    "nodeSelector": lambda pod: pod.spec.get("nodeSelector", {}),
    "tolerations": lambda pod: [_TOLERATION(one) for one in pod.spec.get("tolerations", ())],
    "containers": lambda pod: [_container(one) for one in pod.spec["containers"]],
    "initContainers": lambda pod: [_container(one) for one in pod.spec.get("initContainers", ())],
    "images": _images,
    "volumes": lambda pod: [
        {"name": one["name"], "claim": _maybe(one.get("persistentVolumeClaim", {}).get("claimName"))}
        for one in pod.spec.get("volumes", ())
    ],
    "owner": lambda pod: _owner(pod.metadata),
    "serviceAccount": lambda pod: pod.spec.get("serviceAccountName", ""),
    "createdAt": lambda pod: _time(pod.metadata.get("creationTimestamp")) or 0,
    "podGroup": lambda pod: _maybe(
        pod.spec.get("schedulingGroup", {}).get("podGroupName")
        or pod["labels"].get("scheduling.x-k8s.io/pod-group")
        or None
    ),
    "scheduledAt": _scheduled_at,
    "startedAt": lambda pod: _maybe(_time(pod.status.get("startTime"))),
    "terminating": lambda pod: "deletionTimestamp" in pod.metadata,
    "restarts": lambda pod: sum(one.get("restartCount", 0) for one in pod.status.get("containerStatuses", ())),
}


def _finished(node: Any) -> list[dict[str, Any]]:
    """The newest hundred of those that ended within an hour."""
    now, found = node.cluster.now * 10**9, []
    for pod in node.cluster.ended:
        ends = [one.get("state", {}).get("terminated", {}) for one in pod.status.get("containerStatuses", ())]
        at = min(now, max((_time(one["finishedAt"]) or 0 for one in ends if "finishedAt" in one), default=now))
        if pod.node == node.name and at > now - 3600 * 10**9:
            how = {"failed": pod.status["phase"] == "Failed", "reason": pod.status.get("reason", "")}
            found.append({"owner": _owner(pod.metadata), **how, "finishedAt": at})
    return sorted(found, key=lambda one: one["finishedAt"])[-100:]


def _usage(node: Thing) -> dict[str, int]:
    written = {name: node["annotations"].get(f"policyengine.io/usage-{name}", "") for name in ("cpu", "memory", "at")}
    amounts = {name: amount for name, amount in _in_grain(_exact(written)).items() if amount >= 0 and name != "at"}
    try:
        return amounts | {"at": timestamp_of(written["at"])}
    except NoValue:
        return amounts


NODE: dict[str, Callable[[Any], Any]] = {
    "name": lambda node: node.name,
    **{name: lambda node, name=name: node.metadata.get(name, {}) for name in ("labels", "annotations")},
    "capacity": _of_node("capacity"),
    "allocatable": _of_node("allocatable"),
    "taints": lambda node: [_TAINT(one) for one in node.spec.get("taints", ())],
    "unschedulable": lambda node: node.spec.get("unschedulable", False),
    "conditions": lambda node: [_CONDITION(one) for one in node.status.get("conditions", ())],
    "ready": lambda node: any(one["type"] == "Ready" and one["status"] == "True" for one in node["conditions"]),
    "images": lambda node: [name for image in node.status.get("images", ()) for name in image["names"]],
    "usage": _usage,
    "zone": lambda node: node["labels"].get(ZONE, ""),
    "region": lambda node: node["labels"].get(REGION, ""),
    "createdAt": lambda node: _time(node.metadata.get("creationTimestamp")) or 0,
}

_CHANGING: dict[str, Callable[[Any], Any]] = {
    "used": _of_node("used"),
    "free": _of_node("free"),
    "podCount": lambda node: len(node.pods),
    "pods": lambda node: node.pods,
    "nominated": lambda node: [
        pod
        for pod in node.cluster.pods
        if not pod.node and pod.status.get("nominatedNodeName") == node.name and pod is not node.cluster.asking
    ],
    "finished": _finished,
    "node": lambda pod: pod.node,
    "queuedAt": lambda pod: pod["createdAt"] if pod.queued_at is None else pod.queued_at,
    "attempts": lambda pod: pod.attempts,
}
"""What is read anew each time: other objects decide it."""
