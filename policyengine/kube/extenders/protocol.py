"""The bodies of kube-scheduler's extender protocol (k8s.io/kube-scheduler/extender/v1, types.go), as a client sends
and reads them.

Go writes these structs without JSON names, so their keys are capitalised; pods and nodes in them are the bytes the
API server sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from policyengine.scheduler.actions import Bind, NodeVictims

_Result = TypeVar("_Result")
_encode = msgspec.json.Encoder().encode


class ExtenderFailed(Exception):
    """An extender did not answer, or not as the protocol has it. `sent`: it may have acted all the same."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class _Named(msgspec.Struct):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _Named


class _NodeList(msgspec.Struct):
    items: list[_Node] | None = None


class ExtenderFilterResult(msgspec.Struct, rename="pascal"):
    """The names of the nodes, whatever was sent."""

    nodes: _NodeList | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""

    def passed(self, *, by_name: bool) -> list[str]:
        """The nodes let through; `by_name`: whether the extender was sent names, which then count first."""
        if by_name and self.node_names is not None:
            return self.node_names
        if self.nodes is not None:
            return [node.metadata.name for node in self.nodes.items or ()]
        return self.node_names or []


class HostPriority(msgspec.Struct, rename="pascal"):
    """How an extender likes a node, from 0 to 10."""

    host: str = ""
    score: int = 0


class _ExtenderBindingResult(msgspec.Struct, rename="pascal"):
    error: str = ""


class _MetaPod(msgspec.Struct, rename={"uid": "UID"}):
    uid: str = ""


class _MetaVictims(msgspec.Struct, rename={"pods": "Pods", "violations": "NumPDBViolations"}):
    pods: list[_MetaPod] | None = None
    violations: int = 0


class _ExtenderPreemptionResult(msgspec.Struct, rename={"victims": "NodeNameToMetaVictims"}):
    """UIDs of victims, whatever was sent."""

    victims: dict[str, _MetaVictims | None] | None = None


def as_sent(pod: bytes) -> msgspec.Raw:
    """A pod as kube-scheduler holds it: without its type, and without the managed fields."""
    fields: dict[str, Any] = msgspec.json.decode(pod)
    fields.pop("kind", None)
    fields.pop("apiVersion", None)
    fields.get("metadata", {}).pop("managedFields", None)
    return msgspec.Raw(_encode(fields))


def args_of_names(pod: msgspec.Raw, nodes: Sequence[str]) -> bytes:
    """ExtenderArgs for an extender that keeps nodes of its own (`nodeCacheCapable`)."""
    return _encode({"Pod": pod, "Nodes": None, "NodeNames": nodes})


def args_of_nodes(pod: msgspec.Raw, nodes: Sequence[bytes]) -> bytes:
    """ExtenderArgs for one that keeps none: whole nodes."""
    items = [msgspec.Raw(node) for node in nodes]
    return _encode({"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})


def preemption_args_of_uids(pod: msgspec.Raw, victims: Mapping[str, NodeVictims]) -> bytes:
    """ExtenderPreemptionArgs for an extender that keeps a cache: UIDs."""
    by_node = {node: _victims([{"UID": uid} for uid in one.pods], one) for node, one in sorted(victims.items())}
    return _encode({"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": by_node})


def preemption_args_of_pods(
    pod: msgspec.Raw,
    victims: Mapping[str, NodeVictims],
    names: Mapping[str, Mapping[str, tuple[str, str]]],
    text: Callable[[str, str], bytes | None],
) -> bytes:
    """ExtenderPreemptionArgs for one that keeps none: the pods themselves.

    `names`: node -> UID -> namespace and name; `text`: (name, namespace) -> the pod as the API server has it.
    """
    by_node = {}
    for node, one in sorted(victims.items()):
        texts = [text(name, namespace) for namespace, name in map(names[node].__getitem__, one.pods)]
        by_node[node] = _victims([as_sent(raw) for raw in texts if raw is not None], one)
    return _encode({"Pod": pod, "NodeNameToVictims": by_node, "NodeNameToMetaVictims": None})


def _victims(shown: Sequence[Any], victims: NodeVictims) -> dict[str, Any]:
    return {"Pods": shown, "NumPDBViolations": victims.violations}


def binding_args(bind: Bind) -> bytes:
    """ExtenderBindingArgs."""
    return _encode({"PodName": bind.name, "PodNamespace": bind.namespace, "PodUID": bind.uid, "Node": bind.node})


def filter_result(body: bytes) -> ExtenderFilterResult:
    """What a filter answered. Raises `ExtenderFailed`."""
    answer = _decoded(body, ExtenderFilterResult)
    if answer.error:
        raise ExtenderFailed(answer.error)
    return answer


def priorities(body: bytes) -> Sequence[HostPriority]:
    """What a prioritise answered. Raises `ExtenderFailed`."""
    return [] if body.strip() == b"null" else _decoded(body, list[HostPriority])


def preemption_result(body: bytes) -> dict[str, NodeVictims]:
    """What is left of the victims by node; a node may come without any. Raises `ExtenderFailed`."""
    found = {}
    for node, said in (_decoded(body, _ExtenderPreemptionResult).victims or {}).items():
        left = said or _MetaVictims()
        found[node] = NodeVictims(tuple(one.uid for one in left.pods or ()), left.violations)
    return found


def binding_result(body: bytes) -> None:
    """Take in that a pod was bound. Raises `ExtenderFailed`."""
    answer = _decoded(body, _ExtenderBindingResult)
    if answer.error:
        raise ExtenderFailed(answer.error, sent=False)


def _decoded(body: bytes, type_: type[_Result]) -> _Result:
    """The answer; its name in messages is the protocol's."""
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        name = "HostPriorityList" if type_ is list[HostPriority] else type_.__name__.lstrip("_")
        raise ExtenderFailed(f"its answer is no {name}: {error}") from None
