"""Does a node hold more than it has? Counted from the objects, by code of its own: an auditor shares none with what it
audits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from benchmarks.workloads import Json, Workload

UNITS: Final = {"m": 1, "": 1_000, "Ki": 2**10 * 1_000, "Mi": 2**20 * 1_000, "Gi": 2**30 * 1_000}
"""Thousandths of one."""


def overcommitted(workload: Workload, placed: Mapping[str, str]) -> Iterator[str]:
    """`NODE: used of had RESOURCE`, for each of the workload's nodes and resources that are exceeded.

    `placed`: {measured pod: node}.
    """
    used: dict[tuple[str, str], int] = defaultdict(int)
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


def _add(used: dict[tuple[str, str], int], node: str, item: Json) -> None:
    used[node, "pods"] += 1_000
    for container in item["spec"]["containers"]:
        for resource, amount in container["resources"]["requests"].items():
            used[node, resource] += thousandths(amount)


def thousandths(amount: str) -> int:
    """`100m`, `4`, `500Mi` as workloads write them. Raises KeyError for another unit."""
    digits = amount.rstrip("mKMGi")
    return int(digits) * UNITS[amount[len(digits) :]]
