"""The bodies of kube-scheduler's extender protocol (k8s.io/kube-scheduler/extender/v1, types.go).

Go writes these structs without JSON names, so their keys are capitalised; the objects in them are as the API has
them. Nodes stay the bytes they came as: an answer hands back what was sent, whatever it held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import TypeVar

import msgspec

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import Int64, ObjectError, decode
from policyengine.cluster.pod_objects import Pod
from policyengine.kube.extenders.http_extender import HostPriority, MetaPod, MetaVictims

_T = TypeVar("_T")
_Kind = TypeVar("_Kind", Pod, Node)
_Nodes = TypeVar("_Nodes", bound=Sized)
Body = bytes | bytearray

MAX_NODES = 50_000
"""Nodes of a request."""
MAX_OBJECT = 3 * 1024 * 1024
"""Bytes of a pod or a node: the API server takes no larger request."""
MAX_COMMAS = 3_000_000
"""Commas of a body: they bound what its lists and objects hold. 5,000 nodes with many images have half of them."""


class BadRequest(ValueError):
    """A body that is none of the protocol's; one sentence that says what was expected."""


_ABSENT = msgspec.Raw(b"null")


class _Wire(msgspec.Struct, rename="pascal"):
    pass


class NodeList(msgspec.Struct):
    """core/v1 NodeList, its nodes undecoded."""

    items: list[msgspec.Raw] | None = None


class ExtenderArgs(_Wire):
    """What filter and prioritize are asked. `Nodes` where nodeCacheCapable is false, `NodeNames` where it is true."""

    pod: msgspec.Raw = _ABSENT
    nodes: NodeList | None = None
    node_names: msgspec.Raw = _ABSENT
    """A JSON array of strings; `decode_names` reads it."""


class _Identity(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct):
    metadata: _Identity = _Identity()


class Victims(msgspec.Struct, rename={"pods": "Pods", "violations": "NumPDBViolations"}):
    """The victims of one node, whole."""

    pods: list[_Identified] | None = None
    violations: Int64 = 0


class ExtenderPreemptionArgs(_Wire):
    """What preempt is asked: whose eviction on which node would make room for the pod."""

    pod: msgspec.Raw = _ABSENT
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None

    def victims(self) -> dict[str, MetaVictims]:
        """By node, whichever form was sent."""
        if self.node_name_to_meta_victims is not None:
            return self.node_name_to_meta_victims
        return {
            name: MetaVictims([MetaPod(pod.metadata.uid) for pod in of_node.pods or ()], of_node.violations)
            for name, of_node in (self.node_name_to_victims or {}).items()
        }


class ExtenderBindingArgs(
    msgspec.Struct, rename={"name": "PodName", "namespace": "PodNamespace", "uid": "PodUID", "node": "Node"}
):
    """What bind is asked."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    node: str = ""


_identity = msgspec.json.Decoder(_Identified).decode
_encode = msgspec.json.Encoder().encode


def bound_members(body: Body) -> None:
    """Raises `BadRequest` for a body with too many members; to be called before it is decoded."""
    if body.count(b",") > MAX_COMMAS:
        raise BadRequest(f"the request has more than {MAX_COMMAS} members in its lists and objects")


def decode_args(body: Body) -> ExtenderArgs:
    """The body of filter or prioritize. Raises `BadRequest`."""
    args = _decoded(ExtenderArgs, body, "ExtenderArgs")
    items = args.nodes.items if args.nodes is not None else None
    if bytes(args.node_names) == bytes(_ABSENT) and items is None:
        raise BadRequest("the request names no nodes: neither `NodeNames` nor `Nodes` is there")
    _few_nodes(items or ())
    return args


def decode_names(text: msgspec.Raw) -> list[str]:
    """`NodeNames` of a request. Raises `BadRequest`."""
    return _few_nodes(_decoded(list[str], text, "ExtenderArgs"))


def decode_preemption(body: Body) -> ExtenderPreemptionArgs:
    """The body of preempt. Raises `BadRequest`."""
    args = _decoded(ExtenderPreemptionArgs, body, "ExtenderPreemptionArgs")
    _few_nodes(args.node_name_to_meta_victims or args.node_name_to_victims or ())
    return args


def decode_binding(body: Body) -> ExtenderBindingArgs:
    """The body of bind. Raises `BadRequest`."""
    args = _decoded(ExtenderBindingArgs, body, "ExtenderBindingArgs")
    if not (args.name and args.namespace and args.node):
        raise BadRequest("a binding needs `PodName`, `PodNamespace` and `Node`")
    return args


def decode_pod(raw: msgspec.Raw) -> Pod:
    """The pod of a request. Raises `BadRequest`."""
    if bytes(raw) == bytes(_ABSENT):
        raise BadRequest("the request holds no `Pod`")
    return _object(Pod, raw)


def decode_node(raw: msgspec.Raw) -> Node:
    """A node of a request. Raises `BadRequest`."""
    return _object(Node, raw)


def identity(raw: msgspec.Raw) -> tuple[str, str, str]:
    """(name, UID, resourceVersion) of a node, without decoding the rest. Raises `BadRequest`."""
    try:
        metadata = _identity(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRequest(f"an item of `Nodes` is no node: {error}") from None
    if not metadata.name:
        raise BadRequest("an item of `Nodes` has no name")
    return metadata.name, metadata.uid, metadata.resource_version


# --- answers ---------------------------------------------------------------------------------------------


def filter_result(passed: Mapping[str, object], failed: Mapping[str, str], unresolvable: Mapping[str, str]) -> bytes:
    """ExtenderFilterResult; `passed` is its field of names or nodes."""
    return _encode({"FailedNodes": failed, "FailedAndUnresolvableNodes": unresolvable, "Error": "", **passed})


def error_result(message: str = "") -> bytes:
    """ExtenderBindingResult; also ExtenderFilterResult of a request that could not be answered."""
    return _encode({"Error": message})


def priorities(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """HostPriorityList."""
    return _encode(list(map(HostPriority, names, scores)))


def preemption_result(victims: Mapping[str, MetaVictims]) -> bytes:
    """ExtenderPreemptionResult."""
    return _encode({"NodeNameToMetaVictims": victims})


def _few_nodes(nodes: _Nodes) -> _Nodes:
    if len(nodes) > MAX_NODES:
        raise BadRequest(f"the request has {len(nodes)} nodes; {MAX_NODES} are answered at most")
    return nodes


def _decoded(kind: type[_T], body: Body | msgspec.Raw, what: str) -> _T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is no {what}: {_lower(str(error))}") from None


def _object(kind: type[_Kind], raw: msgspec.Raw) -> _Kind:
    text = bytes(raw)
    if (size := len(text)) > MAX_OBJECT:
        raise BadRequest(f"a {kind.__name__} of {size} bytes; the API server takes none over {MAX_OBJECT}")
    try:
        return decode(kind, text)
    except ObjectError as error:
        raise BadRequest(str(error)) from None


def _lower(text: str) -> str:
    """As it goes on in a sentence; `JSON` keeps its capitals."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
