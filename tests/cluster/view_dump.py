"""The cluster view as plain data."""

import msgspec

from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import ObjectMeta
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod, PodStatus
from policyengine.cluster.view import ClusterView
from tests.cluster.consistency import with_defaults


def dump_view(view: ClusterView) -> dict[str, object]:
    """What the view holds, by name: equal for two views of one cluster, whatever way they came there."""
    return {
        "nodes": {name: _plain_node(view, row) for name, row in view.nodes.row_of.items()},
        "pods": {uid: _plain_pod(info) for uid, info in view.pods.items()},
        "objects": dump_objects(view),
    }


def dump_objects(view: ClusterView) -> dict[str, dict[str, object]]:
    """kind -> key -> object as observed, kinds without objects left out."""
    found: dict[str, dict[str, object]] = {kind: dict(objects) for kind, objects in view._kinds.items() if objects}
    for (kind, key), (_, observed) in view._assumed.items():
        found[kind][key] = observed
    return found


def assumption_owners(view: ClusterView) -> set[str]:
    """UIDs of the pods for which objects are assumed."""
    return {owner for owner, _ in view._assumed.values()}


def _plain_node(view: ClusterView, row: int) -> dict[str, object]:
    table = view.nodes
    node: Node = table.objects[row]
    return {
        "object": msgspec.to_builtins(node),
        "pods": sorted(table.pods_on(row)),
        "requested": {r: int(table.requested(r)[row]) for r in table.resources if table.requested(r)[row]},
        "nonzero": tuple(int(column[row]) for column in with_defaults(table)),
    }


def _plain_pod(info: PodInfo) -> dict[str, object]:
    return {
        "object": msgspec.to_builtins(_shown(info)),
        "state": info.state.value,
        "requests": dict(info.requests.items()),
        "times": (info.created_at, info.scheduled_at, info.started_at),
        "deleting": info.deleting,
        "restarts": info.restarts,
    }


def _shown(info: PodInfo) -> Pod:
    """The pod as the API would show it, as far as it is kept: times and container states are not."""
    kept = ("name", "namespace", "uid", "resource_version", "generation", "labels", "annotations", "owner_references")
    status = PodStatus(phase=info.phase, nominated_node_name=info.nominated_node_name, conditions=info.conditions)
    spec = msgspec.structs.replace(info.shape.spec, node_name=info.node_name)
    return Pod(ObjectMeta(**{name: getattr(info, name) for name in kept}), spec, status)
