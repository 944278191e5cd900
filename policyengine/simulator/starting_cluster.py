"""What a sandbox begins with: nodes of a file, a cluster that was printed elsewhere; as objects that a server takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policyengine.cluster.kinds import BY_KIND, NAMESPACE, NODES, PODS, Kind
from policyengine.diagnosis.dump import ClusterShapeError, objects_in

Object = dict[str, Any]
_SERVERS: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
"""What a server writes into metadata."""
_FIRST: Final = ("Namespace", "StorageClass", "PriorityClass", NODES.kind)
_LAST: Final = PODS.kind
_KINDS: Final[Mapping[str, Kind[Any]]] = {NODES.kind: NODES, PODS.kind: PODS, **BY_KIND}
_BUILT_IN: Final = ("system-node-critical", "system-cluster-critical")


def of_nodes(cluster: Mapping[str, Any]) -> list[tuple[str, Object]]:
    """(path, node) of a file that holds nodes and nothing else: what a node does not say of itself it is given later.

    Raises:
        ClusterShapeError: it holds something else, a node without a name, or nothing.
    """
    found: list[tuple[str, Object]] = []
    for kind, item in objects_in(cluster):
        if kind != NODES.kind:
            raise ClusterShapeError(f"a `{kind}` is no Node")
        if not (item.get("metadata") or {}).get("name"):
            raise ClusterShapeError(f"node {len(found) + 1} has no name")
        found.append((_path(kind, {"metadata": {}}), _with_host(_as_new(dict(item)))))
    if not found:
        raise ClusterShapeError("no Node is there")
    return found


def _with_host(node: Object) -> Object:
    metadata = node["metadata"]
    labels = {"kubernetes.io/hostname": metadata["name"], **(metadata.get("labels") or {})}
    return {**node, "metadata": {**metadata, "labels": labels}}


def of_cluster(cluster: Mapping[str, Any]) -> list[tuple[str, Object]]:
    """(path, object) of all that scheduling reads of a dump, in an order in which a server takes them.

    Pods that have ended or are going are left out. Owners are taken away: they are not part of a dump, and what has
    lost its owners is deleted.

    Raises:
        ClusterShapeError: it is no cluster.
    """
    found = [(kind, _as_new(dict(item))) for kind, item in objects_in(cluster) if _counts(kind, item)]
    found += [("PriorityClass", one) for one in _priority_classes(item for kind, item in found if kind == _LAST)]
    found += [("Namespace", one) for one in _namespaces(found)]
    for kind, item in found:
        if kind in _PREPARED:
            _prepare(kind, item)
    return [(_path(kind, item), item) for kind, item in sorted(found, key=lambda one: _turn(one[0]))]


def _counts(kind: str, item: Mapping[str, Any]) -> bool:
    if (item.get("metadata") or {}).get("deletionTimestamp"):
        return False
    return kind in _KINDS and (kind != _LAST or (item.get("status") or {}).get("phase") not in ("Succeeded", "Failed"))


def _as_new(item: Object) -> Object:
    metadata = {key: value for key, value in (item.get("metadata") or {}).items() if key not in _SERVERS}
    metadata.pop("ownerReferences", None)
    metadata.pop("finalizers", None)
    return {**item, "metadata": metadata}


def _priority_classes(pods: Iterator[Object]) -> Iterator[Object]:
    """A class for each that pods name: a server works priorities out by them."""
    values: dict[str, int] = {}
    for pod in pods:
        spec = pod.get("spec") or {}
        name = spec.get("priorityClassName")
        if name and name not in _BUILT_IN:
            values.setdefault(name, spec.get("priority") or 0)
    for name, value in values.items():
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        yield {**head, "value": value}


def _namespaces(found: list[tuple[str, Object]]) -> list[Object]:
    """Those that objects are in and that are not in the dump."""
    there = {item["metadata"].get("name") for kind, item in found if kind == "Namespace"}
    named = {
        item["metadata"].get("namespace") or NAMESPACE
        for kind, item in found
        if kind in _KINDS and _KINDS[kind].is_namespaced
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(named - there) if name
    ]


def _prepare(kind: str, item: Object) -> None:
    """Take away what the server works out itself: status, a pod's priority, which claim a volume is bound to."""
    item.pop("status", None)
    spec = item["spec"] = dict(item.get("spec") or {})
    if kind == _LAST:
        spec.pop("priority", None)
    if spec.get("claimRef"):
        spec["claimRef"] = {key: value for key, value in spec["claimRef"].items() if key in ("namespace", "name")}


_PREPARED: Final = (_LAST, "PersistentVolume", "PersistentVolumeClaim")


def _turn(kind: str) -> int:
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + (kind == _LAST)


def _path(kind: str, item: Object) -> str:
    if kind == "PriorityClass":
        return "/apis/scheduling.k8s.io/v1/priorityclasses"
    found = _KINDS[kind]
    return found.path(item["metadata"].get("namespace") or NAMESPACE if found.is_namespaced else "")
