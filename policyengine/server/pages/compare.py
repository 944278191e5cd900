"""The same moment under two policies, side by side."""

from __future__ import annotations

from typing import Any, Final

from policyengine.cluster.pod_info import PodState
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages import heat
from policyengine.server.pages.overview import recent
from policyengine.server.pages.source import Moment
from policyengine.server.pages.waiting import by_reason

SHOWN: Final = 200
"""Pods that are listed."""


def content(moments: tuple[Moment, Moment]) -> dict[str, Any]:
    """What the template shows."""
    first, second = (_places(one.state) for one in moments)
    found = [
        (key, first.get(key), second.get(key))
        for key in sorted(first.keys() | second.keys())
        if first.get(key) != second.get(key)
    ]
    return {"sides": [_side(one) for one in moments], "elsewhere": found[:SHOWN], "count": len(found), "shown": SHOWN}


def _places(state: SchedulerState) -> dict[str, str]:
    """Pod -> its node; empty for one that waits."""
    return {pod.key: pod.node_name for pod in state.view.pods.values() if pod.state is not PodState.GONE}


def _side(moment: Moment) -> dict[str, Any]:
    state, queue = moment.state, by_reason(moment.state)
    table = state.view.nodes
    full = [(one, heat.fullness(table, one)) for one in heat.offered(table)[:4]]
    return {
        "recent": recent(state, moment.now),
        "queue": queue,
        "waiting": sum(one["count"] for one in queue),
        "bound": sum(pod.state is PodState.BOUND for pod in state.view.pods.values()),
        "full": [(one, round(float(values[values >= 0].mean())) if (values >= 0).any() else 0) for one, values in full],
        "empty": int((table.pod_count == 0).sum()),
        "nodes": table.n,
        "policies": [(one.scheduler_name, one.name, one.policy_hash) for one in state.profiles],
        "notes": moment.notes,
    }
