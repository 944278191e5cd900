"""What a run comes to, in figures.

| figure | |
|---|---|
| `pods` | that came |
| `placed` | of these, that were bound at some time |
| `waiting` | that are there in the end, and on no node |
| `evictions` | pods that had to go for another |
| `wait` | seconds from coming to binding, else to the end: `mean p50 p90 p95 p99 max` |
| `utilisation` | by resource: the share that is asked for of what there is, in the mean over time |
| `fragmentation` | by resource: the share of what is free in the end on nodes where no typical pod fits: one that
asks for the median of cpu and memory |
| `imbalance` | by resource: the standard deviation, over nodes, of the share that is used in the end |
| `gangs` | `whole`, of which enough members were bound; `partial`, of which too few |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import median_low
from typing import Any, Final

from policyengine.trials.ledger import Ledger, NodeRecord, PodRecord, mean_share, percentile

PERCENTILES: Final = ("mean", "p50", "p90", "p95", "p99", "max")
RESOURCES: Final = ("cpu", "memory")
"""Always told; others where a node offers them."""


def measures(ledger: Ledger, end: float) -> dict[str, Any]:
    """The figures of a run that was so many seconds long, as the table above has them."""
    pods = list(ledger.pods.values())
    nodes = [node for node in ledger.nodes.values() if node.gone is None]
    names = resources(nodes)
    return {
        "pods": len(pods),
        "placed": sum(pod.bound is not None for pod in pods),
        "waiting": sum(pod.state == "pending" for pod in pods),
        "evictions": sum(pod.how == "preempted" for pod in pods),
        "wait": waits(pods, end),
        "utilisation": {name: round(mean_share(ledger.samples, name, 0.0, end), 6) for name in names},
        "fragmentation": {name: round(share, 6) for name, share in _fragmentation(pods, nodes, names).items()},
        "imbalance": {name: round(_deviation(_shares(nodes, name)), 6) for name in names},
        "gangs": {
            "whole": sum(ledger.gang_bound[gang] >= least for gang, least in ledger.gang_minimum.items()),
            "partial": len(ledger.partial),
        },
    }


def waits(pods: Iterable[PodRecord], end: float) -> dict[str, float]:
    """`mean p50 …` of seconds."""
    ordered = sorted(waited(pod, end) for pod in pods)
    return {which: round(percentile(ordered, which), 3) for which in PERCENTILES}


def waited(pod: PodRecord, end: float) -> float:
    """Seconds up to the binding, else up to the pod's end or that of the run."""
    until = pod.bound if pod.bound is not None else pod.ended if pod.ended is not None else end
    return max(0.0, until - pod.created)


def resources(nodes: Iterable[NodeRecord]) -> list[str]:
    """The names of what nodes offer, pods apart."""
    offered = {name for node in nodes for name, amount in node.room.items() if amount and name != "pods"}
    return [*RESOURCES, *sorted(offered - {*RESOURCES, "ephemeral-storage"})]


def _shares(nodes: Sequence[NodeRecord], name: str) -> list[float]:
    return [node.used[name] / node.room[name] for node in nodes if node.room.get(name)]


def _deviation(values: Sequence[float]) -> float:
    if not values:
        return 0.0
    mean = sum(values) / len(values)
    return sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _fragmentation(pods: Sequence[PodRecord], nodes: Sequence[NodeRecord], names: Sequence[str]) -> Mapping[str, float]:
    typical = {
        name: median_low([pod.asks.get(name, 0) for pod in pods]) if pods else 0 for name in (*RESOURCES, "pods")
    }
    useless = [node for node in nodes if any(_free(node, name) < asked for name, asked in typical.items())]
    lost = {name: sum(max(0, _free(node, name)) for node in useless) for name in names}
    free = {name: sum(max(0, _free(node, name)) for node in nodes) for name in names}
    return {name: lost[name] / free[name] if free[name] else 0.0 for name in names}


def _free(node: NodeRecord, name: str) -> int:
    return node.room.get(name, 0) - node.used[name]
