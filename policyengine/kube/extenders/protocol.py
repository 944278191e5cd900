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


class FilterResult(msgspec.Struct, rename="pascal"):
    """ExtenderFilterResult: the names of the nodes, whatever was sent."""

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


class _BindingResult(msgspec.Struct, rename="pascal"):
    error: str = ""


class _MetaPod(msgspec.Struct, rename={"uid": "UID"}):
    uid: str = ""


class _MetaVictims(msgspec.Struct, rename={"pods": "Pods", "violations": "NumPDBViolations"}):
    pods: list[_MetaPod] | None = None
    violations: int = 0


class _PreemptionResult(msgspec.Struct, rename={"victims": "NodeNameToMetaVictims"}):
    """ExtenderPreemptionResult: UIDs of victims, whatever was sent."""

    victims: dict[str, _MetaVictims | None] | None = None


_decode_filtered = msgspec.json.Decoder(FilterResult).decode
_decode_priorities = msgspec.json.Decoder(list[HostPriority] | None).decode
_decode_preemption = msgspec.json.Decoder(_PreemptionResult).decode
_decode_binding = msgspec.json.Decoder(_BindingResult).decode


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
    pod: msgspec.Raw, victims: Mapping[str, NodeVictims], whole: Callable[[str, str], bytes | None]
) -> bytes:
    """ExtenderPreemptionArgs for one that keeps none: the pods themselves; `whole`: (node, UID) -> its victim."""
    by_node = {
        node: _victims([as_sent(raw) for uid in one.pods if (raw := whole(node, uid)) is not None], one)
        for node, one in sorted(victims.items())
    }
    return _encode({"Pod": pod, "NodeNameToVictims": by_node, "NodeNameToMetaVictims": None})


def _victims(shown: Sequence[Any], victims: NodeVictims) -> dict[str, Any]:
    return {"Pods": shown, "NumPDBViolations": victims.violations}


def binding_args(bind: Bind) -> bytes:
    """ExtenderBindingArgs."""
    return _encode({"PodName": bind.name, "PodNamespace": bind.namespace, "PodUID": bind.uid, "Node": bind.node})


def filter_result(body: bytes) -> FilterResult:
    """What a filter answered. Raises `ExtenderFailed`."""
    answer = _decoded(_decode_filtered, body, "ExtenderFilterResult")
    if answer.error:
        raise ExtenderFailed(answer.error)
    return answer


def priorities(body: bytes) -> Sequence[HostPriority]:
    """What a prioritise answered. Raises `ExtenderFailed`."""
    return _decoded(_decode_priorities, body, "HostPriorityList") or ()


def preemption_result(body: bytes) -> dict[str, NodeVictims]:
    """What is left of the victims by node; a node may come without any. Raises `ExtenderFailed`."""
    answer = _decoded(_decode_preemption, body, "ExtenderPreemptionResult").victims or {}
    return {node: _node_victims(said or _MetaVictims()) for node, said in answer.items()}


def _node_victims(said: _MetaVictims) -> NodeVictims:
    return NodeVictims(tuple(one.uid for one in said.pods or ()), said.violations)


def binding_result(body: bytes) -> None:
    """Take in that a pod was bound. Raises `ExtenderFailed`."""
    answer = _decoded(_decode_binding, body, "ExtenderBindingResult")
    if answer.error:
        raise ExtenderFailed(answer.error, sent=False)


def _decoded(decode: Callable[[bytes], _Result], body: bytes, what: str) -> _Result:
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ExtenderFailed(f"its answer is no {what}: {error}") from None
