"""All nodes, or those of a group; and one of them: how full it is, what runs on it, why the pods that wait are not
there.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from policyengine.framework.evaluator import Evaluator
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages import heat
from policyengine.server.pages.source import Asked, Moment, NotShown, part
from policyengine.server.pages.waiting import waiting

COLUMNS = 5
"""Resources that are shown."""


class Row(NamedTuple):
    """One node."""

    name: str
    group: str
    pods: int
    most_pods: int
    state: str
    amounts: dict[str, tuple[int, int, int]]
    """Resource -> (requested, allocatable, percent)."""


def all_content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows."""
    table = moment.state.view.nodes
    label, value = asked.query.get("label", ""), asked.query.get("value")
    resources = heat.offered(table)[:COLUMNS]
    columns = {name: (table.requested(name), table.allocatable(name), heat.fullness(table, name)) for name in resources}
    looked_for = asked.query.get("q", "")
    rows = [
        Row(
            name,
            group,
            table.pod_count.item(row),
            table.allowed_pods.item(row),
            _state(bool(table.ready[row]), bool(table.unschedulable[row])),
            {one: (used.item(row), there.item(row), full.item(row)) for one, (used, there, full) in columns.items()},
        )
        for name, row in sorted(table.row_of.items())
        if looked_for in name
        for group in [heat.label_of(table, row, label)]
        if value is None or not label or group == value
    ]
    keys: dict[str, Any] = {one: lambda row, one=one: row.amounts[one][2] for one in resources}
    keys |= {"node": lambda row: row.name, "pods": lambda row: row.pods, "state": lambda row: row.state}
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
        "amounts": [(one, *table.room(one, row)) for one in heat.offered(table) if table.room(one, row)[0]],
        "most_pods": table.allowed_pods.item(row),
        "refused": _refused(state, row),
    }


def _refused(state: SchedulerState, row: int) -> list[dict[str, Any]]:
    """`{pod, like, rule, why}` of the first pods that wait and are not like one before: `like` it are so many. `rule`
    is empty where the node would do."""
    evaluators = {profile.scheduler_name: Evaluator(profile) for profile in state.profiles}
    snapshot = state.view.snapshot()
    found: dict[int, dict[str, Any]] = {}
    for one in waiting(state):
        evaluator, shape = evaluators.get(one.pod.scheduler_name), id(one.pod.shape)
        if evaluator is None or one.queued is None:
            continue
        if shape in found:
            found[shape]["like"] += 1
        elif len(found) < ASKED:
            status = evaluator.filter_node(one.pod, snapshot, row)
            by = "" if status.is_success else status.plugin or "its spec"
            found[shape] = {"pod": one.pod, "like": 1, "rule": by, "why": status.message, "reason": one.reason}
    return list(found.values())
