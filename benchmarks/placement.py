"""Where the pods of a run lie: how evenly, and whether a node holds more than it has.

Speed must not be bought with a worse spread. Counted from the objects, by code of its own: an auditor shares none with
what it audits.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.workloads import ZONE, Json, Workload

UNITS: Final = {"m": 1, "": 1_000, "Ki": 2**10 * 1_000, "Mi": 2**20 * 1_000, "Gi": 2**30 * 1_000}
"""Thousandths of one."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The measured pods on the workload's nodes."""

    least: int
    most: int
    mean: float
    deviation: float
    """Standard deviation over all nodes, those without a pod too."""
    zones: tuple[int, int]
    """Least and most in a zone."""

    @staticmethod
    def of(workload: Workload, placed: Mapping[str, str]) -> Placement:
        """From {pod: node}. Nodes that were not the workload's from the start count only where they have pods."""
        zone_of = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in workload.node_objects()}
        counts = Counter(dict.fromkeys(zone_of, 0))
        counts.update(placed.values())
        zones = Counter(dict.fromkeys(zone_of.values(), 0))
        zones.update(zone_of[node] for node in placed.values() if node in zone_of)
        each = list(counts.values())
        ends = (min(zones.values()), max(zones.values()))
        return Placement(min(each), max(each), len(placed) / workload.nodes, statistics.pstdev(each), ends)


def overcommitted(workload: Workload, placed: Mapping[str, str]) -> Iterator[str]:
    """`NODE: used of had RESOURCE`, for each of the workload's nodes and resources that are exceeded.

    `placed`: {measured pod: node}.
    """
    used: Counter[tuple[str, str]] = Counter()
    for item in workload.pod_objects(""):
        on = placed.get(item["metadata"]["name"])
        if on is not None:
            _add(used, on, item)
    for initial in workload.initial_objects():
        _add(used, initial["spec"]["nodeName"], initial)
    for node in workload.node_objects():
        name = node["metadata"]["name"]
        for resource, amount in node["status"]["allocatable"].items():
            had, taken = thousandths(amount), used[name, resource]
            if taken > had:
                yield f"{name}: {taken / 1_000:,.10g} of {had / 1_000:,.10g} {resource}"


def _add(used: Counter[tuple[str, str]], node: str, item: Json) -> None:
    used[node, "pods"] += 1_000
    for container in item["spec"]["containers"]:
        for resource, amount in container["resources"]["requests"].items():
            used[node, resource] += thousandths(amount)


def thousandths(amount: str) -> int:
    """`100m`, `4`, `500Mi` as workloads write them. Raises KeyError for another unit."""
    digits = amount.rstrip("mKMGi")
    return int(digits) * UNITS[amount[len(digits) :]]
