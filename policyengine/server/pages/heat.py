"""How full the nodes are, or how many of the next pods a rule keeps off them: a picture, and a table by groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.framework.evaluator import Evaluator
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages.source import Asked
from policyengine.server.pages.waiting import waiting

RULE: Final = "rule:"
PODS: Final = "pods"
ASKED: Final = 8
"""Pods that wait, all different, of which a rule is asked."""
GROUPS: Final = 64
"""Groups that a label may make; one with more values says little."""
FIRST: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname")
_LOOKED_AT: Final = 200
"""Nodes whose labels are offered for grouping."""

Values = NDArray[np.int64]
"""Percent, by row; -1 where there is nothing to be full."""


def content(state: SchedulerState, asked: Asked) -> dict[str, Any]:
    """`{by, bys, rules, group, group_keys, groups, heat_names, heat_values, heat_title, nodes}`."""
    table = state.view.nodes
    by = asked.query.get("by", "cpu")
    rules = sorted({plugin.name for profile in state.profiles for plugin in profile.filters})
    keys = group_keys(table)
    group = asked.query.get("group", "") or (keys[0] if keys else "")
    if by.startswith(RULE) and (rule := by.removeprefix(RULE)) not in rules:
        values, title = np.full(table.n, -1, np.int64), f"no policy has a filter `{rule}`"
    elif by.startswith(RULE):
        values, title = kept_off(state, rule)
    else:
        values, title = fullness(table, by), f"{by} asked for, of what there is"
    order = sorted(range(table.n), key=lambda row: (label_of(table, row, group), table.names[row]))
    return {
        "by": by,
        "bys": [*offered(table), PODS],
        "rules": rules,
        "rule_prefix": RULE,
        "group": group,
        "group_keys": keys,
        "groups": list(_groups(table, group, values)),
        "heat_names": [table.names[row] for row in order],
        "heat_groups": [label_of(table, row, group) for row in order],
        "heat_values": values[order].tolist(),
        "heat_title": title,
        "nodes": table.n,
        "not_ready": int(np.count_nonzero(~table.ready)),
        "cordoned": int(np.count_nonzero(table.unschedulable)),
    }


def fullness(table: NodeTable, resource: str) -> Values:
    """What is asked for, in percent of what a node has."""
    if resource == PODS:
        used, there = table.pod_count, table.allowed_pods
    else:
        used, there = table.requested(resource), table.allocatable(resource)
    return np.where(there > 0, np.round(100.0 * used / np.maximum(there, 1)), -1).astype(np.int64)


def kept_off(state: SchedulerState, rule: str) -> tuple[Values, str]:
    """From which nodes the rule keeps the pods that wait: percent of those asked about."""
    refused, asked = np.zeros(state.view.nodes.n, np.int64), 0
    for evaluator, pod in _different(state):
        asked += 1
        for found, column in evaluator.filters_asked(pod, state.view.snapshot()):
            if found.name == rule:
                refused += np.ones_like(refused) if not column.status.is_success else column.values != 0
    if not asked:
        return np.full_like(refused, -1), "no pod waits that could be asked about"
    return np.round(100.0 * refused / asked).astype(np.int64), f"kept off by {rule}, of {asked} pods that wait"


def _different(state: SchedulerState) -> Iterator[tuple[Evaluator, Any]]:
    """The first pods that wait and are not like one before."""
    evaluators = {profile.scheduler_name: Evaluator(profile) for profile in state.profiles}
    seen: set[int] = set()
    for one in waiting(state):
        evaluator = evaluators.get(one.pod.scheduler_name)
        if evaluator is not None and one.queued is not None and id(one.pod.shape) not in seen:
            seen.add(id(one.pod.shape))
            yield evaluator, one.pod
        if len(seen) >= ASKED:
            return


def offered(table: NodeTable) -> list[str]:
    """The resources that some node has."""
    return [name for name in table.resources if bool((table.allocatable(name) > 0).any())]


def group_keys(table: NodeTable) -> list[str]:
    """The labels by which nodes can be grouped: zones first, then by name."""
    values: dict[str, set[str]] = {}
    for node in islice(table.objects, _LOOKED_AT):
        for key, value in node.metadata.labels.items():
            values.setdefault(key, set()).add(value)
    few = [key for key, found in values.items() if len(found) <= GROUPS and (len(found) > 1 or key in FIRST[:2])]
    return sorted(few, key=lambda key: (FIRST.index(key) if key in FIRST else len(FIRST), key))


def label_of(table: NodeTable, row: int, key: str) -> str:
    """What the node in `row` has under the label; empty where it has none."""
    return table.objects[row].metadata.labels.get(key, "")


def _groups(table: NodeTable, key: str, values: Values) -> Iterator[dict[str, Any]]:
    """`{value, nodes, pods, mean, least, most, resources}`: those with most nodes first."""
    labels = [label_of(table, row, key) for row in range(table.n)]
    shown = [name for name, _ in Counter(labels).most_common(GROUPS)]
    numbers = {name: number for number, name in enumerate(shown)}
    ids = np.array([numbers.get(label, -1) for label in labels], np.int64)
    resources = offered(table)[:4]
    for number, name in enumerate(shown):
        rows = np.flatnonzero(ids == number)
        told = values[rows][values[rows] >= 0]
        yield {
            "value": name,
            "nodes": len(rows),
            "pods": int(table.pod_count[rows].sum()),
            "mean": round(float(told.mean())) if len(told) else None,
            "least": int(told.min()) if len(told) else None,
            "most": int(told.max()) if len(told) else None,
            "resources": [  # added without a bound: one node may say that it has as much as 64 bits hold
                (one, sum(table.requested(one)[rows].tolist()), sum(table.allocatable(one)[rows].tolist()))
                for one in resources
            ],
        }
