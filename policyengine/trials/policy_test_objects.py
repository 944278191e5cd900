"""The nodes and pods that a test gives, as the API would show them; the checker has seen to the types of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policyengine.cluster.allocatable import unreadable
from policyengine.cluster.kinds import GROUP_LABEL
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import ObjectError, decode
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.workload_objects import Namespace, PodGroup
from policyengine.compiler.params import convert
from policyengine.language.ir import test_nodes as ir_test
from policyengine.language.types import DURATION

Json = dict[str, Any]
Fields = Mapping[str, Any]

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_RESOURCES = {"storage": "ephemeral-storage"}


def given_node(step: ir_test.GivenNode) -> Node:
    """The node. Raises `ObjectError` where `spec` or `status` holds something that a node does not, or an amount is
    negative."""
    node = decode(Node, node_item(step))
    if why := unreadable(node):
        raise ObjectError(f"Node `{node.metadata.name}`: {why}")
    return node


def node_item(step: ir_test.GivenNode) -> Json:
    """The node as the API has it. What is not said: it is ready, untainted, and has nothing; capacity and allocatable
    stand in for one another; its label `kubernetes.io/hostname` is its name."""
    fields: Fields = step.fields
    labels = {"kubernetes.io/hostname": step.name, **fields.get("labels", {})}
    for name, label in (("zone", ZONE), ("region", REGION)):
        if name in fields:
            labels[label] = str(fields[name])
    usage = {f"policyengine.io/usage-{name}": str(value) for name, value in fields.get("usage", {}).items()}
    amounts = [fields[name] for name in ("allocatable", "capacity") if name in fields] or [{}]
    metadata = {
        "name": step.name,
        "uid": step.name,
        "labels": labels,
        "annotations": fields.get("annotations", {}) | usage,
        "creationTimestamp": fields.get("createdAt"),
    }
    spec = {"unschedulable": fields.get("unschedulable", False), "taints": fields.get("taints", [])}
    status = {
        "allocatable": _amounts(amounts[0]),
        "capacity": _amounts(amounts[-1]),
        "conditions": _conditions(fields),
        "images": [{"names": [name]} for name in fields.get("images", [])],
    }
    return _with_raw(metadata, spec, status, fields)


def _conditions(fields: Fields) -> list[Any]:
    given: list[Any] = fields.get("conditions", [])
    if any(condition.get("type") == "Ready" for condition in given) and "ready" not in fields:
        return given
    others = [condition for condition in given if condition.get("type") != "Ready"]
    return [{"type": "Ready", "status": "True" if fields.get("ready", True) else "False"}, *others]


def given_pod(step: ir_test.GivenPod, number: int, scheduler: str, created: str) -> Pod:
    """The pod. Raises `ObjectError` where `spec` or `status` holds something that a pod does not."""
    return decode(Pod, pod_item(step, number, scheduler, created))


def pod_item(step: ir_test.GivenPod, number: int, scheduler: str, created: str) -> Json:
    """The pod as the API has it. What is not said: namespace `default`, one container without requests, a UID that
    sorts in the order in which the pods are given."""
    fields: Fields = step.fields
    owner = fields.get("owner", {})
    owners = [{"kind": "", "name": "", "uid": owner.get("name", ""), **owner, "controller": True}]
    metadata = {
        "name": step.name,
        "namespace": fields.get("namespace", "default"),
        "uid": fields.get("uid", f"{number:04d}-{step.name}"),
        "labels": fields.get("labels", {}) | ({GROUP_LABEL: _group_name(fields)} if "group" in fields else {}),
        "annotations": fields.get("annotations", {}),
        "creationTimestamp": fields.get("createdAt", created),
        "ownerReferences": owners if "owner" in fields else [],
        "deletionTimestamp": created if fields.get("terminating") else None,
    }
    spec = {
        "schedulerName": scheduler,
        "nodeName": step.on or "",
        "containers": _containers(fields),
        "initContainers": [_container(one, f"i{at}") for at, one in enumerate(fields.get("initContainers", []))],
        "priority": fields.get("priority", 0),
        "priorityClassName": fields.get("priorityClass", ""),
        "nodeSelector": fields.get("nodeSelector", {}),
        "tolerations": fields.get("tolerations", []),
        "volumes": [_volume(one) for one in fields.get("volumes", [])],
        "serviceAccountName": fields.get("serviceAccount", ""),
        "schedulingGroup": {"podGroupName": fields["podGroup"]}
        if "podGroup" in fields and "group" not in fields
        else None,
    }
    return _with_raw(metadata, spec, _pod_status(step, created), fields)


def given_namespace(step: ir_test.GivenPod, known: Mapping[str, object]) -> Namespace | None:
    """The namespace whose labels or annotations are given with one of its pods, None where none are. What is not said
    is as it is in `known`, by name."""
    fields: Fields = step.fields
    parts = {part: fields.get(f"namespace{part.title()}") for part in ("labels", "annotations")}
    if parts["labels"] is parts["annotations"] is None:
        return None
    name = fields.get("namespace", "default")
    before = known.get(name)
    if isinstance(before, Namespace):
        parts = {part: getattr(before.metadata, part) if given is None else given for part, given in parts.items()}
    return decode(Namespace, {"metadata": {"name": name, "uid": name, **{k: v or {} for k, v in parts.items()}}})


def given_group(step: ir_test.GivenPod) -> PodGroup | None:
    """The PodGroup object (`scheduling.x-k8s.io`) that is given with one of its pods, None where none is."""
    fields: Fields = step.fields
    if "group" not in fields:
        return None
    group: Fields = fields["group"]
    spec: Json = {"minMember": group.get("minMember", 0), "minResources": _amounts(group.get("minResources", {}))}
    if "scheduleTimeout" in group:
        nanoseconds = convert(group["scheduleTimeout"], DURATION, "scheduleTimeout")
        assert isinstance(nanoseconds, int)
        spec["scheduleTimeoutSeconds"] = nanoseconds // 10**9
    name = _group_name(fields)
    metadata = {"name": name, "namespace": fields.get("namespace", "default"), "uid": name}
    return decode(PodGroup, {"metadata": metadata, "spec": spec})


def _group_name(fields: Fields) -> str:
    named = fields.get("group", {}).get("name") or fields.get("podGroup")
    return str(named or fields.get("labels", {}).get(GROUP_LABEL, "group"))


def _pod_status(step: ir_test.GivenPod, created: str) -> Json:
    fields: Fields = step.fields
    status: Json = {
        "phase": fields.get("phase", "Running" if step.on else "Pending"),
        "nominatedNodeName": fields.get("nominatedNode", ""),
        "startTime": fields.get("startedAt", created if step.on else None),
    }
    if step.on:
        at = fields.get("scheduledAt", created)
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]
    ended = {"state": {"terminated": {"finishedAt": fields["finishedAt"]}}} if "finishedAt" in fields else {}
    if "restarts" in fields or ended:
        status["containerStatuses"] = [{"name": "c", "restartCount": fields.get("restarts", 0), **ended}]
    return status | ({"reason": fields["reason"]} if "reason" in fields else {})


def _containers(fields: Fields) -> list[Json]:
    if fields.get("containers"):
        return [_container(one, f"c{at}") for at, one in enumerate(fields["containers"])]
    first, *others = fields.get("images") or ["app"]
    images = ({"name": f"c{at}", "image": image} for at, image in enumerate(others, start=1))
    return [_container({**fields, "name": "c", "image": first}, "c"), *images]


def _container(given: Fields, name: str) -> Json:
    resources = {kind: _amounts(given.get(kind, {})) for kind in ("requests", "limits")}
    ports = given.get("ports", [])
    return {"name": given.get("name", name), "image": given.get("image", ""), "resources": resources, "ports": ports}


def _volume(given: Fields) -> Json:
    claim = given.get("claim")
    return {"name": given.get("name", ""), "persistentVolumeClaim": {"claimName": claim} if claim else None}


def _with_raw(metadata: Json, spec: Json, status: Json, fields: Fields) -> Json:
    """With what the fields `spec` and `status` say as the API has it."""
    raw = {name: given for name in ("spec", "status") if isinstance(given := fields.get(name), dict)}
    return {"metadata": metadata, "spec": spec | raw.get("spec", {}), "status": status | raw.get("status", {})}


def _amounts(amounts: Mapping[str, object]) -> dict[str, str]:
    return {_RESOURCES.get(name, name): str(amount) for name, amount in amounts.items()}
