"""Where a pod nearly fits: the node that lacks least, and the fewest running pods whose going would make room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.diagnosis.what_if import Attempt, Change, WhatIf, amount_text
from policyengine.framework.status import Rows
from policyengine.plugins.node_state.node_ports import collide
from policyengine.plugins.resources.amounts import PODS

NODES: Final = 3
"""Nodes that are looked at closely."""

Demand = Sequence[tuple[str, int]]


def nearest_fit(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Mapping[str, int] | None:
    """{resource: what is free of it} for the resources the pod has to ask less of, on the node where that is fewest
    and least; None where every node has no pod slot, or nothing at all of something, left."""
    with what_if.cluster_of(attempt) as snapshot:
        nodes, demand = snapshot.nodes, attempt.pod.shape.amounts
        usable = nodes.pod_count[rows] < nodes.allowed_pods[rows]
        count = np.zeros(len(rows), dtype=np.int64)
        less = np.zeros(len(rows))
        for resource, amount in demand:
            free = _free(nodes, resource)[rows]
            short = amount > free
            usable &= ~short | (free > 0)
            count += short
            less += np.where(short, (amount - free) / amount, 0.0)
        order = _order(rows, usable & (count > 0), (count, less), nodes)
        if not order:
            return None
        row = order[0]
        return {name: int(free) for name, amount in demand if amount > (free := _free(nodes, name)[row])}


def _free(nodes: NodeTable, resource: str) -> NDArray[np.int64]:
    return nodes.free(resource)


def roomiest(attempt: Attempt, what_if: WhatIf, rows: Rows) -> list[int]:
    """The few rows that lack least for the pod, those that lack nothing first."""
    nodes = what_if.view.nodes
    lack = _lack(attempt.pod.shape.amounts, nodes, rows)
    return _order(rows, np.ones(len(rows), dtype=np.bool_), (lack,), nodes)[:NODES]


def free_room(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    """The fewest pods that could go from a node that is large enough, so that the pod fits there."""
    with what_if.cluster_of(attempt) as snapshot:
        nodes, demand = snapshot.nodes, attempt.pod.shape.amounts
        large = nodes.allowed_pods[rows] > 0
        for resource, amount in demand:
            large &= nodes.allocatable(resource)[rows] >= amount
        found: list[tuple[tuple[int, int, float], str, list[PodInfo], dict[str, int]]] = []
        for row in _order(rows, large, (_lack(demand, nodes, rows),), nodes)[:NODES]:
            missing = _missing(demand, nodes, row)
            leaving = _fewest(list(nodes.pods_on(row).values()), missing)
            if leaving:
                worth = (len(leaving), max(pod.priority for pod in leaving), _size(leaving, missing))
                found.append((worth, nodes.names[row], leaving, missing))
    for _, name, leaving, missing in sorted(found, key=lambda one: one[:2]):
        amounts = " and ".join(
            "a pod slot" if resource == PODS else f"{amount_text(resource, amount)} {resource}"
            for resource, amount in missing.items()
        )
        yield _freed(attempt, amounts, name, leaving)


def free_ports(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    """The pods that hold the wanted host ports on the node where they are fewest."""
    nodes, wanted = what_if.view.nodes, attempt.pod.shape.host_ports
    holders = []
    for row in rows.tolist()[: 16 * NODES]:
        pods = [pod for pod in nodes.pods_on(row).values() if collide(wanted, pod.shape.host_ports)]
        holders.append((len(pods), nodes.names[row], pods))
    for _, name, pods in sorted(holders, key=lambda one: one[:2])[:1]:
        ports = ", ".join(sorted({str(port) for _, _, port in wanted}))
        yield _freed(attempt, f"host port {ports}", name, pods)


def _freed(attempt: Attempt, what: str, node: str, leaving: Sequence[PodInfo]) -> Attempt:
    names = ", ".join(pod.key for pod in leaving)
    ends = all(pod.deleting for pod in leaving)
    how = f"wait until {names} has terminated" if ends else f"delete or move {names}"
    detail = {"node": node, "what": what, "pods": [pod.key for pod in leaving]}
    cost = 1.1 if ends else 1.5 + 0.2 * len(leaving)
    change = Change("free", "", f"free {what} on {node}: {how}", cost, detail)
    return attempt.without(change, frozenset(pod.uid for pod in leaving))


def _lack(demand: Demand, nodes: NodeTable, rows: Rows) -> NDArray[np.float64]:
    """What each node lacks, as a share of the demand, summed over the resources: `float64[rows]`."""
    lack = np.zeros(len(rows))
    for resource, amount in demand:
        free = _free(nodes, resource)[rows]
        lack += np.maximum(amount - free, 0) / amount
    return lack + (nodes.pod_count[rows] >= nodes.allowed_pods[rows])


def _order(rows: Rows, usable: NDArray[np.bool_], keys: Sequence[NDArray[np.generic]], nodes: NodeTable) -> list[int]:
    """The usable rows, the smallest keys first; of equals the node whose name comes first."""
    places = np.flatnonzero(usable).tolist()
    listed = [key.tolist() for key in keys]
    names = nodes.names
    places.sort(key=lambda place: (*(key[place] for key in listed), names[rows[place]]))
    return [int(rows[place]) for place in places]


def _missing(demand: Demand, nodes: NodeTable, row: int) -> dict[str, int]:
    missing = {name: amount - int(free) for name, amount in demand if amount > (free := _free(nodes, name)[row])}
    if nodes.pod_count[row] >= nodes.allowed_pods[row]:
        missing[PODS] = int(nodes.pod_count[row] - nodes.allowed_pods[row]) + 1
    return missing


def _fewest(pods: list[PodInfo], missing: Mapping[str, int]) -> list[PodInfo]:
    """Pods whose going covers what is missing: those that go anyway where they suffice, else one alone, else the
    largest until it is enough. Lower priorities first. Empty where all together do not."""
    going = [pod for pod in pods if pod.deleting]
    if going and _size(going, missing) >= 1:
        return going
    alone = [pod for pod in pods if _size([pod], missing) >= 1]
    if alone:
        return [min(alone, key=lambda pod: (pod.priority, sum(amount for _, amount in pod.shape.amounts), pod.key))]
    chosen: list[PodInfo] = []
    for pod in sorted(pods, key=lambda pod: (pod.priority, -_size([pod], missing), pod.key)):
        chosen.append(pod)
        if _size(chosen, missing) >= 1:
            return chosen
    return []


def _size(pods: Sequence[PodInfo], missing: Mapping[str, int]) -> float:
    """How much of what is missing the pods hold, of the resource they hold least of: 1 is just enough."""
    held = [
        (len(pods) if resource == PODS else sum(pod.shape.requests.get(resource) for pod in pods)) / amount
        for resource, amount in missing.items()
    ]
    return min(held, default=0.0)
