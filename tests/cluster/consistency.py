"""Checks the view against sums made from scratch.

Slow on purpose: it shares no sums with the table it checks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from policyengine.cluster.allocatable import allocatable_of
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_requests import CPU, MEMORY
from policyengine.cluster.pod_table import ABSENT, PodTable
from policyengine.cluster.usage_counts import UsageCounts
from policyengine.cluster.view import ClusterView


def validate_view(view: ClusterView) -> None:
    """Count everything again from pods and nodes; AssertionError names the first invariant broken."""
    _check_pods(view)
    _check_rows(view.nodes)
    _check_concerned(view)
    for row in range(view.nodes.n):
        _check_node(view, row)
    _check_derived(view.nodes)
    _check_pod_table(view.nodes.pod_table)
    _check_usage(view)


def with_defaults(table: NodeTable) -> list[Any]:
    """What is requested of cpu and memory, a container without a request counting 100m and 200Mi."""
    return [table.allocatable(name) - table.free(name, with_defaults=True) for name in (CPU, MEMORY)]


def decoded(table: NodeTable, what: str, key: str) -> list[Any]:
    """A column made of Node objects, spelt out; None where absent."""
    column = table.derived.encoded(what, key)
    return [column.value(row) for row in range(table.n)]


def _check_pod_table(table: PodTable) -> None:
    if not table._is_read:
        return
    now = table.current()
    assert {info.uid: info for info in now.infos} == dict(table._pods), "the pods of the pod table"
    for place, info in enumerate(now.infos):
        assert table._place_of[info.uid] == place, "places"
        row = table._row_of.get(info.node_name, ABSENT) if info.node_name else ABSENT
        assert now.rows[place] == row, f"row of {info}"
    for name, column in table._columns.items():
        for place, info in enumerate(now.infos):
            assert column.value(place) == column.read(place), f"column {name} of {info}"


def _check_usage(view: ClusterView) -> None:
    placed = [info for info in view.pods.values() if info.node_name]
    for grouping, counts in view._usage.items():
        expected = UsageCounts((info, grouping.groups(info)) for info in placed).dump()
        assert counts.dump() == expected, f"counts {counts.dump()} should be {expected}"


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _check_pods(view: ClusterView) -> None:
    pods = view.pods.values()
    _require(all(uid == info.uid for uid, info in view.pods.items()), "pods are filed under their uid")
    keys = {info.key: info.uid for info in pods}
    _require(len(keys) == len(view.pods), "no two pods have one name")
    _require(
        all(view.find_pod(info.namespace, info.name) is info for info in pods),
        "every pod is found by its name",
    )
    for info in pods:
        _require(info.state is not PodState.GONE and not info.finished, f"{info} is not kept once gone")
        placed = info.state is not PodState.PENDING
        _require(placed == bool(info.node_name), f"{info} has a node just when it is assumed or bound")
    pending = [info for info in pods if info.state is PodState.PENDING]
    _require(view.pending_count == len(pending), "pending pods are counted")
    _require(
        _by_node(view.nominated) == {(i.nominated_node_name, i.uid) for i in pending if i.nominated_node_name},
        "nominations are those of pending pods",
    )
    _require(
        _by_node(view.orphans)
        == {(i.node_name, i.uid) for i in pods if i.node_name and i.node_name not in view.nodes.row_of},
        "orphans are the pods on unknown nodes",
    )


def _by_node(index: dict[str, dict[str, PodInfo]]) -> set[tuple[str, str]]:
    _require(all(index.values()), "no node is kept without pods in an index")
    return {(node, uid) for node, pods in index.items() for uid in pods}


def _check_rows(table: NodeTable) -> None:
    _require(table.n == len(table.names) == len(table.objects) == len(table.row_of), "rows are dense")
    for row, name in enumerate(table.names):
        _require(table.row_of[name] == row, f"`{name}` is in the row its name says")
        _require(table.objects[row].metadata.name == name, f"row {row} holds the object of `{name}`")


def _check_concerned(view: ClusterView) -> None:
    placed = [info for info in view.pods.values() if info.node_name in view.nodes.row_of]
    counted = sum(info.shape.concerns_pods for info in placed)
    _require(view.nodes.concerned_pods == counted, "pods with terms about other pods are counted")


def _check_node(view: ClusterView, row: int) -> None:
    table, name = view.nodes, view.nodes.names[row]
    here = {info.uid: info for info in view.pods.values() if info.node_name == name}
    _require(dict(table.pods_on(row)) == here, f"the pods on `{name}` are those that say so")
    requested: Counter[str] = Counter()
    for info in here.values():
        requested.update(dict(info.requests.items()))
    allocatable = allocatable_of(table.objects[row])
    for resource in {*table.resources, *requested, *allocatable.amounts}:
        _require(
            int(table.requested(resource)[row]) == requested[resource],
            f"requested {resource} on `{name}` is the sum of its pods'",
        )
        _require(
            int(table.allocatable(resource)[row]) == allocatable.amounts.get(resource, 0),
            f"allocatable {resource} of `{name}`",
        )
    shapes = [info.shape for info in here.values()]
    expected = (allocatable.pods, len(here), sum(s.nonzero_cpu for s in shapes), sum(s.nonzero_memory for s in shapes))
    columns = (
        table.allowed_pods,
        table.pod_count,
        *with_defaults(table),
    )
    _require(tuple(int(column[row]) for column in columns) == expected, f"the counts of `{name}`")


def _check_derived(table: NodeTable) -> None:
    """Columns kept up to date row by row equal those of a table made of the same nodes now."""
    fresh = NodeTable()
    fresh.known_as = table.known_as
    fresh.derived.finished = table.derived.finished
    for node in table.objects:
        fresh.set_node(node)
    for what in ("name_hash", "unschedulable", "ready", "created_at"):
        _require(bool((getattr(table, what) == getattr(fresh, what)).all()), f"column {what}")
    for what, key in table.derived._encoded:
        _require(decoded(table, what, key) == decoded(fresh, what, key), f"{what} `{key}`")
    _require(table.images._sizes == fresh.images._sizes, "images")
