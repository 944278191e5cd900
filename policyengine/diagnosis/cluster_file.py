"""A cluster from plain objects: what `explain`, scenarios and tests start from.

Two shapes are read: a Kubernetes `List` (`kubectl get nodes,pods,… -A -o json`), and an object of lists (`nodes`,
`pods`, `pending`, `namespaces`, …). Pods without a node that are not finished are pending, wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from policyengine.cluster.kinds import BY_KIND, NODES, PODS, kind_of
from policyengine.cluster.objects import Node, ObjectError, Pod, decode
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView

_FIELDS: Final[Mapping[str, str]] = {
    NODES.dump_key: NODES.kind,
    PODS.dump_key: PODS.kind,
    "pending": PODS.kind,
    **{kind.dump_key: kind.kind for kind in BY_KIND.values() if kind.dump_key},
}


class ClusterShapeError(ValueError):
    """The input is no cluster; the message says what was expected."""


@dataclass(slots=True)
class LoadedCluster:
    """A view, and the pods that wait, in the order given."""

    view: ClusterView
    pending: list[PodInfo] = field(default_factory=list)


def load_cluster(cluster: Mapping[str, Any]) -> LoadedCluster:
    """Read the objects into a view. Objects of kinds that scheduling does not read are passed over.

    Raises `ClusterShapeError` for a wrong shape, and `ObjectError` for a malformed object.
    """
    view = ClusterView()
    waiting: list[str] = []
    for kind, item in _objects(cluster):
        if kind == "Node":
            view.add_or_update_node(decode(Node, item))
        elif kind == "Pod":
            change = view.add_or_update_pod(decode(Pod, item))
            if change.new is not None and not change.new.node_name and change.new.uid not in waiting:
                waiting.append(change.new.uid)
        elif kind in BY_KIND:
            view.set_object(kind, decode(BY_KIND[kind].type, item))
    return LoadedCluster(view, [view.pods[uid] for uid in waiting if uid in view.pods])


def _objects(cluster: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """(kind, object), one after another."""
    if not isinstance(cluster, Mapping):
        raise ClusterShapeError("a cluster is a JSON object: a `List`, or one with `nodes` and `pods`")
    if "items" in cluster:
        for item in _listed(cluster, "items"):
            kind = item.get("kind")
            if not isinstance(kind, str):
                raise ClusterShapeError("an item of the list has no `kind`")
            yield kind_of(item), item
        return
    if not any(name in cluster for name in _FIELDS):
        raise ClusterShapeError(f"none of {', '.join(f'`{name}`' for name in ('nodes', 'pods', 'pending'))} is there")
    for name, kind in _FIELDS.items():
        for item in _listed(cluster, name):
            yield kind_of({**item, "kind": kind}), item


def _listed(cluster: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    items = cluster.get(name)
    if items is None:
        return
    if not isinstance(items, list):
        raise ClusterShapeError(f"`{name}` is not a list")
    for item in items:
        if not isinstance(item, Mapping):
            raise ClusterShapeError(f"`{name}` holds something that is not an object")
        yield item


__all__ = ["ClusterShapeError", "LoadedCluster", "ObjectError", "load_cluster"]
