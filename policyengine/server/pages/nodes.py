"""Nodes: how full they are, or how many of the next pods a rule keeps off them, as a picture and a table by groups;
all of them, or those of a group; and one: how full it is, what runs on it, why the pods that wait are not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.framework.evaluator import Evaluator
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages.source import Asked, Moment, NotShown, part
from policyengine.server.pages.waiting import Waiting, waiting

RULE: Final = "rule:"
PODS: Final = "pods"
DIFFERENT: Final = 8
"""Pods that wait, all different, of which a rule is asked."""
GROUPS: Final = 64
"""Groups that a label may make; one with more values says little."""
FIRST: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname")
_LOOKED_AT: Final = 200
"""Nodes whose labels are offered for grouping."""

Values = NDArray[np.int64]
"""Percent, by row; -1 where there is nothing to be full."""


def picture(state: SchedulerState, asked: Asked) -> dict[str, Any]:
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
    """From which nodes the rule keeps the pods that wait: percent of those asked about, the first that are not like one
    before."""
    refused, shapes = np.zeros(state.view.nodes.n, np.int64), set[int]()
    for evaluator, one in _askable(state):
        if id(one.pod.shape) in shapes:
            continue
        shapes.add(id(one.pod.shape))
        for found, column in evaluator.filters_asked(one.pod, state.view.snapshot()):
            if found.name == rule:
                refused += np.ones_like(refused) if not column.status.is_success else column.values != 0
        if len(shapes) >= DIFFERENT:
            break
    if not shapes:
        return np.full_like(refused, -1), "no pod waits that could be asked about"
    told = f"kept off by {rule}, of {len(shapes)} pods that wait"
    return np.round(100.0 * refused / len(shapes)).astype(np.int64), told


def _askable(state: SchedulerState) -> Iterator[tuple[Evaluator, Waiting]]:
    """The pods that wait of which the rules can be asked."""
    evaluators = {profile.scheduler_name: Evaluator(profile) for profile in state.profiles}
    for one in waiting(state):
        if one.queued is not None and one.pod.scheduler_name in evaluators:
            yield evaluators[one.pod.scheduler_name], one


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


# --- the list, and one of them ------------------------------------------------------------------------------


COLUMNS = 5
"""Resources that are shown."""


def all_content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows. `amounts` of a row: resource -> (requested, allocatable, percent)."""
    table = moment.state.view.nodes
    label, value = asked.query.get("label", ""), asked.query.get("value")
    resources = offered(table)[:COLUMNS]
    columns = {name: (table.requested(name), table.allocatable(name), fullness(table, name)) for name in resources}
    looked_for = asked.query.get("q", "")
    rows = [
        {
            "name": name,
            "group": group,
            "pods": table.pod_count.item(row),
            "most_pods": table.allowed_pods.item(row),
            "state": _state(bool(table.ready[row]), bool(table.unschedulable[row])),
            "amounts": {one: tuple(column.item(row) for column in of_one) for one, of_one in columns.items()},
        }
        for name, row in sorted(table.row_of.items())
        if looked_for in name
        for group in [label_of(table, row, label)]
        if value is None or not label or group == value
    ]
    keys: dict[str, Any] = {one: lambda row, one=one: row["amounts"][one][2] for one in resources}
    keys |= {"node": itemgetter("name"), "pods": itemgetter("pods"), "state": itemgetter("state")}
    return {**part(rows, asked, keys), "label": label, "value": value, "resources": resources, "looked_for": looked_for}


def _state(ready: bool, cordoned: bool) -> str:
    return ", ".join([*([] if ready else ["not ready"]), *(["cordoned"] if cordoned else [])]) or "ready"


ASKED: Final = 20
"""Pods that wait, all different, of which the rules are asked."""


def content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows. Raises `NotShown`."""
    state, name = moment.state, asked.path["name"]
    table = state.view.nodes
    row = table.row_of.get(name)
    if row is None:
        raise NotShown(404, f"no node `{name}` is here")
    node = table.objects[row]
    pods = sorted(table.pods_on(row).values(), key=lambda pod: pod.key)
    keys = {
        "pod": lambda pod: pod.key,
        "cpu": lambda pod: pod.requests.get("cpu"),
        "memory": lambda pod: pod.requests.get("memory"),
        "priority": lambda pod: pod.priority,
        "age": lambda pod: pod.created_at,
    }
    return {
        **part(pods, asked, keys),
        "node": node,
        "ready": bool(table.ready[row]),
        "amounts": [(one, *table.room(one, row)) for one in offered(table) if table.room(one, row)[0]],
        "most_pods": table.allowed_pods.item(row),
        "refused": _refused(state, row),
    }


def _refused(state: SchedulerState, row: int) -> list[dict[str, Any]]:
    """`{pod, like, rule, why}` of the first pods that wait and are not like one before: `like` it are so many. `rule`
    is empty where the node would do."""
    snapshot = state.view.snapshot()
    found: dict[int, dict[str, Any]] = {}
    for evaluator, one in _askable(state):
        shape = id(one.pod.shape)
        if shape in found:
            found[shape]["like"] += 1
        elif len(found) < ASKED:
            status = evaluator.filter_node(one.pod, snapshot, row)
            by = "" if status.is_success else status.plugin or "its spec"
            found[shape] = {"pod": one.pod, "like": 1, "rule": by, "why": status.message, "reason": one.reason}
    return list(found.values())
