"""What a run comes to, in figures.

| figure | |
|---|---|
| `pods` | that came |
| `placed` | of these, that were bound at some time |
| `waiting` | that are there in the end, and on no node |
| `evictions` | pods that had to go for another |
| `wait` | seconds from coming to binding, else to the end: `mean p50 p90 p95 p99 max` |
| `utilisation` | by resource: the share that is asked for of what there is, in the mean over time |
| `allocated` | by resource: the share that is asked for of what there is, in the end |
| `fragmentation` | by resource: the share of what is free in the end on nodes where no typical pod fits: one that
asks for the median of cpu and memory |
| `imbalance` | by resource: the standard deviation, over nodes, of the share that is used in the end |
| `spread` | `node`, `zone`: on how many of them the pods of a controller stand in the end, of as many as they could: in
the mean over controllers of two pods or more; 1 where there is none |
| `gangs` | `whole`, of which enough members were bound; `partial`, of which only some were at one time |
| `quotas` | by name and resource: what its pods use in the mean over time, of the guarantee, else of the limit |
| `share` | `error`: what tenants (`fair by`) use beyond their fair shares, of what all of them use |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import fmean, median_low, pstdev
from typing import Any, Final

from policyengine.plan.rerun import Rerun
from policyengine.trials.ledger import NodeRecord, PodRecord, mean_share, percentile

PERCENTILES: Final = ("mean", "p50", "p90", "p95", "p99", "max")
RESOURCES: Final = ("cpu", "memory")
"""Always told; others where a node offers them."""


def measures(run: Rerun) -> dict[str, Any]:
    """The figures of a run, as the table above has them."""
    ledger, end = run.ledger, run.end
    pods = list(ledger.pods.values())
    nodes = [node for node in ledger.nodes.values() if node.gone is None]
    names = resources(nodes)
    room = {name: sum(node.room.get(name, 0) for node in nodes) for name in names}
    used = {name: sum(node.used[name] for node in nodes) for name in names}
    shares = {name: [node.used[name] / node.room[name] for node in nodes if node.room.get(name)] for name in names}
    return {
        "pods": len(pods),
        "placed": sum(pod.bound is not None for pod in pods),
        "waiting": sum(pod.state == "pending" for pod in pods),
        "evictions": sum(pod.how == "preempted" for pod in pods),
        "wait": waits(pods, end),
        "utilisation": {name: round(mean_share(ledger.samples, name, 0.0, end), 6) for name in names},
        "allocated": {name: round(used[name] / room[name], 6) if room[name] else 0.0 for name in names},
        "fragmentation": {name: round(share, 6) for name, share in _fragmentation(pods, nodes, names).items()},
        "imbalance": {name: round(pstdev(of), 6) if of else 0.0 for name, of in shares.items()},
        "spread": _spread(run, nodes),
        "gangs": _gangs(run),
        "quotas": _quotas(run),
        "share": {"error": round(_unfairness(run), 6)},
    }


def waits(pods: Iterable[PodRecord], end: float) -> dict[str, float]:
    """`mean p50 …` of seconds."""
    ordered = sorted(waited(pod, end) for pod in pods)
    return {which: round(percentile(ordered, which), 3) for which in PERCENTILES}


def waited(pod: PodRecord, end: float) -> float:
    """Seconds up to the binding, else up to the pod's end or that of the run."""
    until = pod.bound if pod.bound is not None else pod.ended if pod.ended is not None else end
    return max(0.0, until - pod.created)


def dominant_share(pods: Iterable[PodRecord], run: Rerun) -> float:
    """The largest part that the pods use of any resource of the cluster, in the mean over time."""
    used = mean_use(pods, run.end)
    return max((used[name] / room for name, room in run.room.items() if room and name != "pods"), default=0.0)


def mean_use(pods: Iterable[PodRecord], end: float) -> Mapping[str, float]:
    """What pods use of each resource in the mean over a run of so many seconds; 0 of the others."""
    used: defaultdict[str, float] = defaultdict(float)
    for pod in pods:
        if pod.bound is not None and end > 0.0:
            share = ((end if pod.ended is None else pod.ended) - pod.bound) / end
            for name, amount in pod.asks.items():
                used[name] += amount * share
    return used


def fair_shares(asked: Mapping[str, float], weights: Mapping[str, float], total: float) -> dict[str, float]:
    """`total` shared out by weight, to nobody more than it asks for (max-min fairness: progressive filling).

    Example: of 0.8, three who ask for 0.1, 0.6 and 0.6 get 0.1, 0.35 and 0.35.
    """
    ordered = sorted(asked, key=lambda one: asked[one] / weights[one])
    rest = [*accumulate(weights[name] for name in reversed(ordered))][::-1]  # the weight of each and all after it
    found: dict[str, float] = {}
    for name, weight in zip(ordered, rest, strict=True):
        found[name] = min(asked[name], total * weights[name] / weight)
        total -= found[name]
    return found


def _unfairness(run: Rerun) -> float:
    """Shares are dominant ones, in the mean over time; a pod asks for its own from when it came."""
    pods: dict[str, list[PodRecord]] = defaultdict(list)
    weights: dict[str, float] = {}
    for pod in run.ledger.pods.values():
        member = run.member(pod.uid)
        if member.tenant is not None and member.weight > 0.0:
            pods[member.tenant].append(pod)
            weights[member.tenant] = member.weight
    used = {tenant: dominant_share(of, run) for tenant, of in pods.items()}
    asked = {
        tenant: dominant_share([replace(pod, bound=pod.created) for pod in of], run) for tenant, of in pods.items()
    }
    fair = fair_shares(asked, weights, total := sum(used.values()))
    return sum(max(0.0, used[tenant] - fair[tenant]) for tenant in used) / total if total else 0.0


def resources(nodes: Iterable[NodeRecord]) -> list[str]:
    """The names of what nodes offer, pods apart."""
    offered = {name for node in nodes for name, amount in node.room.items() if amount and name != "pods"}
    return [*RESOURCES, *sorted(offered - {*RESOURCES, "ephemeral-storage"})]


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


def _spread(run: Rerun, nodes: Sequence[NodeRecord]) -> dict[str, float]:
    workloads: dict[str, list[str]] = defaultdict(list)
    for pod in run.ledger.pods.values():
        workload = run.member(pod.uid).workload
        if workload and pod.state == "running":
            workloads[workload].append(pod.node)
    zones = {node.name: zone for node in nodes if (zone := run.zones.get(node.name))}
    by_zone = [[zones[name] for name in placed if name in zones] for placed in workloads.values()]
    return {"node": _apart(list(workloads.values()), len(nodes)), "zone": _apart(by_zone, len(set(zones.values())))}


def _apart(workloads: Iterable[Sequence[str]], domains: int) -> float:
    shares = [len(set(places)) / min(len(places), domains) for places in workloads if len(places) > 1 and domains]
    return round(fmean(shares), 6) if shares else 1.0


def _gangs(run: Rerun) -> dict[str, int]:
    bound: dict[object, list[float]] = defaultdict(list)
    least: Counter[object] = Counter()
    for pod in run.ledger.pods.values():
        member = run.member(pod.uid)
        gang: object = member.gang or pod.gang
        if gang:
            least[gang] = max(least[gang], member.minimum or run.ledger.gang_minimum.get(pod.gang, 0))
            bound[gang] += [] if pod.bound is None else [pod.bound]
    whole = {gang for gang, times in bound.items() if len(times) >= least[gang]}
    at_once = {gang for gang in whole if (times := sorted(bound[gang])) and times[least[gang] - 1] == times[0]}
    return {"whole": len(whole), "partial": sum(bool(times) for gang, times in bound.items() if gang not in at_once)}


def _quotas(run: Rerun) -> dict[str, dict[str, float]]:
    pods: dict[str, list[PodRecord]] = defaultdict(list)
    quotas: dict[str, Mapping[str, int]] = {}
    for pod in run.ledger.pods.values():
        for name, bounds in run.member(pod.uid).quotas:
            pods[name].append(pod)
            quotas[name] = bounds
    found = {}
    for name, bounds in sorted(quotas.items()):
        used = mean_use(pods[name], run.end)
        found[name] = {resource: round(used[resource] / most, 6) for resource, most in bounds.items() if most}
    return found
