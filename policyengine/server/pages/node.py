"""One node: how full it is, what runs on it, and why the pods that wait are not on it."""

from __future__ import annotations

from typing import Any, Final

from policyengine.framework.evaluator import Evaluator
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages import heat
from policyengine.server.pages.lists import part
from policyengine.server.pages.source import Asked, Moment, NotShown
from policyengine.server.pages.waiting import waiting

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
