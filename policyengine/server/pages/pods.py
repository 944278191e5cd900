"""The pods that wait, and those that are looked for by name or node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policyengine.cluster.pod_info import PodState
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages.lists import part
from policyengine.server.pages.source import Asked, Moment
from policyengine.server.pages.waiting import Waiting, waiting

BOUND = "bound"
_KEYS = {
    "pod": lambda one: one.pod.key,
    "scheduler": lambda one: (one.pod.scheduler_name, one.pod.key),
    "place": lambda one: (one.place, one.pod.key),
    "since": lambda one: one.pod.created_at,
    "attempts": lambda one: 0 if one.queued is None else one.queued.attempts,
    "priority": lambda one: one.pod.priority,
}


def content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows."""
    state, query = moment.state, asked.query
    looked_for, place = query.get("q", "").strip(), query.get("place", "")
    found = [one for one in _asked_for(state, looked_for, place) if _matches(one, asked, looked_for)]
    shown = part(found, asked, _KEYS)
    shown["rows"] = [(one, state.last_message(one.pod.uid)) for one in shown["rows"]]
    filters = [(name, query[name]) for name in ("scheduler", "place", "reason", "node") if query.get(name)]
    return {**shown, "looked_for": looked_for, "filters": filters}


def _asked_for(state: SchedulerState, looked_for: str, place: str) -> Iterator[Waiting]:
    """Those that wait, in the order of their turns; where somebody looks for a pod, those with a node behind them."""
    if place != BOUND:
        yield from waiting(state)
    if looked_for or place == BOUND:
        bound = (pod for pod in state.view.pods.values() if pod.state is PodState.BOUND)
        yield from (Waiting(pod, BOUND, f"on {pod.node_name}", None) for pod in bound)


def _matches(one: Waiting, asked: Asked, looked_for: str) -> bool:
    query = asked.query
    wanted = (
        (query.get("scheduler"), one.pod.scheduler_name),
        (query.get("place"), one.place),
        (query.get("node"), one.pod.node_name),
    )
    if any(given and given != has for given, has in wanted):
        return False
    reason = query.get("reason")
    if reason and reason != one.reason and reason not in one.reason.split(", "):
        return False
    return looked_for in one.pod.key
