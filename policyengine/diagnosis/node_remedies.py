"""What could be done to nodes: uncordon one, take a taint off it, label it, add more like it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from math import log2
from typing import Final

from msgspec.structs import replace

from policyengine.cluster.node_objects import Node, Taint
from policyengine.cluster.pod_objects import PodSpec
from policyengine.diagnosis import kubectl_commands
from policyengine.diagnosis.victims import places, roomiest
from policyengine.diagnosis.what_if import Attempt, Change, WhatIf
from policyengine.framework.status import Rows
from policyengine.plugins.selectors.node_selector import required_affinity
from policyengine.plugins.selectors.tolerations import HARD, untolerated

HOSTNAME: Final = "kubernetes.io/hostname"
_OF_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
"""Labels and taints under these domains are set by the kubelet, a controller or a cloud: what a person writes there
does not last."""
MOST: Final = 256
"""Nodes that are added."""
LABELS: Final = 64
"""Labels a pod may ask for in all, so that it is looked which of them a node lacks."""
SHAPES: Final = 8
"""Kinds of nodes of which one more is tried."""


def uncordoned(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    """One of the cordoned nodes, made schedulable."""
    for row in roomiest(attempt, what_if, rows):
        node = what_if.node(attempt, row)
        name = node.metadata.name
        line = kubectl_commands.line("uncordon", name, names=[name])
        yield attempt.with_nodes(Change("uncordon", "", f"uncordon {name}", 1.0, {"node": name}, line), [as_new(node)])


def untainted(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    """One of the nodes without the taints in the way; those that a controller sets stay."""
    for row in roomiest(attempt, what_if, rows):
        node = what_if.node(attempt, row)
        name, changed = node.metadata.name, attempt
        for taint in untolerated(attempt.pod.shape.spec.tolerations, node.spec.taints, HARD):
            if is_of_kubernetes(taint.key):
                break
            node = replace(node, spec=replace(node.spec, taints=tuple(one for one in node.spec.taints if one != taint)))
            text = taint_text(taint)
            detail = {"node": name, "key": taint.key, "value": taint.value, "effect": taint.effect}
            line = kubectl_commands.line("taint", "node", name, f"{text}-", names=[name, *taint.key.split("/")])
            change = Change("untaint", "", f"remove the taint {text} from {name}", 1.4, detail, line)
            changed = changed.with_nodes(change, [node])
        else:
            yield changed


def labelled(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    """One of the nodes with the labels that the pod's nodeSelector and node affinity ask for."""
    wanted = _wanted(attempt.pod.shape.spec)
    if not 0 < len(wanted) <= LABELS or any(map(is_of_kubernetes, wanted)):
        return
    for row in roomiest(attempt, what_if, rows):
        yield with_labels(attempt, what_if.node(attempt, row), wanted)


def with_labels(attempt: Attempt, node: Node, labels: Mapping[str, str]) -> Attempt:
    """The attempt with labels that the node lacks."""
    name = node.metadata.name
    for key, value in labels.items():
        had = node.metadata.labels.get(key)
        if had == value:
            continue
        node = replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, key: value}))
        text = f"label node {name} {key}={value}" + ("" if had is None else f" instead of {had}")
        detail = {"node": name, "key": key, "value": value}
        line = kubectl_commands.label("node", [name], key, value)
        change = Change("label", f"node {key}", text, 1.4 if had is None else 1.8, detail, line)
        attempt = attempt.with_nodes(change, [node])
    return attempt


def _wanted(spec: PodSpec) -> dict[str, str]:
    """Labels that a node must have for the pod, where adding labels alone can do."""
    wanted = dict(spec.node_selector)
    selector = required_affinity(spec)
    for term in selector.node_selector_terms[:1] if selector else ():
        if term.match_fields or any(one.operator not in ("In", "Exists") for one in term.match_expressions):
            return {}
        for one in term.match_expressions:
            wanted.setdefault(one.key, one.values[0] if one.values else "true")
    return wanted


def more(attempt: Attempt, what_if: WhatIf) -> Iterator[Attempt]:
    """As many more nodes like one that is there as the pod, or what is left of its gang, needs."""
    nodes, demand = what_if.view.nodes, dict(attempt.pod.shape.amounts)
    kinds: dict[object, int] = {}
    for row in sorted(filter(what_if.is_node, range(nodes.n)), key=nodes.names.__getitem__):
        kinds.setdefault(_kind(nodes.objects[row]), row)
    rows = [row for row in kinds.values() if all(nodes.allocatable(name)[row] >= asks for name, asks in demand.items())]
    sizes = {row: (nodes.allocatable("cpu")[row], nodes.allocatable("memory")[row]) for row in rows}
    short, before = _short(attempt, what_if), _before(attempt, what_if)
    for place, row in enumerate(sorted(rows, key=sizes.__getitem__)[:SHAPES]):
        like = nodes.objects[row]
        whole = {name: nodes.allocatable(name)[row] // asks for name, asks in demand.items()}
        each = int(min([*whole.values(), nodes.allowed_pods[row]]))
        if each <= 0:
            continue
        least = -(-short // each)
        for count in dict.fromkeys((least, least + 1, -(-(short + before) // each))):
            if count <= MOST:
                yield _added(attempt, what_if, like, count, 1.9 + 0.1 * log2(count) + place)


def _short(attempt: Attempt, what_if: WhatIf) -> int:
    """How many pods lack room."""
    count = what_if.short(attempt)
    if count == 1:
        return 1
    rows = what_if.feasible(attempt)
    with what_if.cluster_of(attempt) as snapshot:
        found = places(dict(attempt.pod.shape.amounts), snapshot.nodes, rows)
    return max(1, count - found)


def _before(attempt: Attempt, what_if: WhatIf) -> int:
    """How many pods that wait are likely to be served before the pod."""
    pod, pods = attempt.pod, what_if.view.pods.values()
    mine = -pod.priority, pod.created_at
    return sum(not one.node_name and one.uid != pod.uid and (-one.priority, one.created_at) <= mine for one in pods)


def _added(attempt: Attempt, what_if: WhatIf, like: Node, count: int, cost: float) -> Attempt:
    """With the nodes; those that the attempt has added already are counted in, so that it is one change."""
    name = like.metadata.name
    free = (f"{name}-more-{number}" for number in itertools.count(1))
    names = (one for one in free if one not in what_if.view.nodes.row_of and one not in attempt.nodes)
    new = [_another(like, one) for one in itertools.islice(names, count)]
    before = [one for one in attempt.changes if one.kind == "node" and one.detail["like"] == name]
    total = count + sum(one.detail["count"] for one in before)
    text = f"add a node like {name}" if total == 1 else f"add {total} nodes like {name}"
    change = Change("node", "", text, cost, {"like": name, "count": total})
    others = tuple(one for one in attempt.changes if one not in before)
    return dataclasses.replace(attempt, changes=others).with_nodes(change, new)


def _another(like: Node, name: str) -> Node:
    fresh = as_new(like)
    taints = tuple(taint for taint in fresh.spec.taints if not taint.key.startswith("node.kubernetes.io/"))
    labels = {key: name if key == HOSTNAME else value for key, value in fresh.metadata.labels.items()}
    metadata = replace(fresh.metadata, name=name, uid=f"uid of {name}", labels=labels)
    return replace(fresh, metadata=metadata, spec=replace(fresh.spec, taints=taints))


def _kind(node: Node) -> object:
    """Equal for nodes of which one is as good as another one more."""
    labels = tuple(sorted(item for item in node.metadata.labels.items() if item[0] != HOSTNAME))
    status = node.status
    return labels, node.spec.taints, tuple(sorted((status.allocatable or status.capacity).items(), key=str))


def as_new(node: Node) -> Node:
    """The node without the cordon, and without the taint that the node controller adds to cordoned ones."""
    kept = tuple(taint for taint in node.spec.taints if taint.key != "node.kubernetes.io/unschedulable")
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=kept))


def taint_text(taint: Taint) -> str:
    """`key=value:Effect`."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def is_of_kubernetes(key: str) -> bool:
    """Whether Kubernetes sets labels and taints of this key itself."""
    domain = key.partition("/")[0] if "/" in key else ""
    return any(domain == one or domain.endswith(f".{one}") for one in _OF_KUBERNETES)
