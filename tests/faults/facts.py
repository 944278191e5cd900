"""What pods and nodes say of themselves, read from their JSON by the auditor alone."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

Json = dict[str, Any]

UNITS = {"m": Fraction(1, 1000), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "": Fraction(1)}
FINISHED = ("Succeeded", "Failed")
ENFORCED = ("NoSchedule", "NoExecute")
GIVES_WAY = "policyengine.io/gives-way"
RESOURCES = ("cpu", "memory", "pods")


def node_of(pod: Json | None) -> str:
    return "" if pod is None else str(pod["spec"].get("nodeName", ""))


def amount(text: Any) -> Fraction:
    digits = str(text).rstrip("mMGi")
    return Fraction(digits) * UNITS[str(text)[len(digits) :]]


def asks(pod: Json, resource: str) -> Fraction:
    if resource == "pods":
        return Fraction(1)
    asked = (one.get("resources", {}).get("requests", {}).get(resource, 0) for one in pod["spec"]["containers"])
    return sum(map(amount, asked), Fraction(0))


def allocatable_of(node: Json, resource: str) -> Fraction:
    return amount(node["status"]["allocatable"].get(resource, 0))


def refusal(pod: Json, node: Json) -> str:
    """Why the pod must not stand on the node, but for room."""
    if node["spec"].get("unschedulable"):
        return "it is cordoned"
    tolerated = {(one["key"], one.get("effect")) for one in pod["spec"].get("tolerations", [])}
    for taint in node["spec"].get("taints", []):
        if taint["effect"] in ENFORCED and not {(taint["key"], taint["effect"]), (taint["key"], None)} & tolerated:
            return f"it has the taint {taint['key']}"
    labels, wanted = node["metadata"].get("labels", {}), pod["spec"].get("nodeSelector", {})
    return "" if all(labels.get(key) == value for key, value in wanted.items()) else "it has not the labels"


def nominated(other: Json, pod: Json) -> str:
    """Where room is being made for another pod that this one yields to."""
    if other["metadata"].get("deletionTimestamp") or other["spec"].get("priority", 0) < pod["spec"].get("priority", 0):
        return ""
    return str(other.get("status", {}).get("nominatedNodeName") or "")


def told(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "PodScheduled" and one["status"] == "False" and one.get("message") for one in conditions)


def ended(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in FINISHED


def begun(pod: Json) -> bool:
    return "startTime" in pod.get("status", {})


def gives_way(pod: Json) -> bool:
    meta = pod["metadata"]
    has_controller = any(one.get("controller") for one in meta.get("ownerReferences", []))
    return GIVES_WAY in meta.get("annotations", {}) and has_controller and not begun(pod)


def gang_of(pod: Json) -> str:
    group = pod["metadata"].get("labels", {}).get("podGroup", "")
    return f"{pod['metadata']['namespace']}/{group}" if group else ""


def least_of(pod: Json) -> int:
    return int(pod["metadata"]["labels"]["minAvailable"])


def uid_of(pod: Json) -> str:
    return str(pod["metadata"]["uid"])


def key_of(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
