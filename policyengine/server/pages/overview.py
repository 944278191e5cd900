"""The overview: what is bound, what waits and why, how full the nodes are, quotas, gangs, candidates, policies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from statistics import median_low
from typing import Any, Final

from policyengine.cluster.pod_info import PodState
from policyengine.scheduler.queue.queued_pods import Place
from policyengine.scheduler.state import SchedulerState
from policyengine.server import debug
from policyengine.server.pages import nodes
from policyengine.server.pages.source import Asked, Moment
from policyengine.server.pages.waiting import by_reason

RECENT: Final = 60.0
"""Seconds over which bindings and waits are told."""
SHOWN: Final = 50
"""Quotas, gangs and tenants that are listed."""
PLACES: Final = 200
"""Pods that are listed which are elsewhere under another policy."""


def content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows."""
    state = moment.state
    queue = by_reason(state)
    quota = debug.quota(state)
    gangs = _gangs(state)
    return {
        **nodes.picture(state, asked),
        "recent": recent(state, moment.now),
        "charts": [{**one, "mark": moment.now} for one in moment.charts],
        "queue": queue,
        "waiting": sum(one["count"] for one in queue),
        "pods": len(state.view.pods),
        "quotas": [one | {"resources": list(_resources(one))} for one in quota["quotas"][:SHOWN]],
        "left_out": {"quotas": max(0, len(quota["quotas"]) - SHOWN), "gangs": max(0, len(gangs) - SHOWN)},
        "tenants": sorted(quota["tenants"], key=lambda one: -one["share"])[:SHOWN],
        "gangs": gangs[:SHOWN],
        "rollouts": debug.rollout(state)["rollouts"],
        "policies": debug.status(state, moment.standings),
        "ages": {one.scheduler_name: age(moment, one.scheduler_name) for one in state.profiles},
    }


def age(moment: Moment, scheduler_name: str) -> float | None:
    """Seconds since the policy that serves the scheduler name does; None where it did from the start."""
    versions = moment.state.versions(scheduler_name)
    return moment.now - versions[-1].since if versions and versions[-1].since else None


def recent(state: SchedulerState, now: float) -> dict[str, Any]:
    """`{seconds, bound, rate, median, p99}` of the pods that were given a node in the last minute: by this scheduler,
    or, where it gave none, by whom their conditions tell of. Times in seconds; None where there are none."""
    lately = takewhile(lambda one: now - one[1].at <= RECENT, state.recent_placements())
    waits = sorted(max(0.0, placed.at - placed.queued_at) for _, placed in lately) or sorted(
        max(0.0, pod.scheduled_at - pod.created_at)
        for pod in state.view.pods.values()
        if pod.state is PodState.BOUND and pod.scheduled_at is not None and 0 <= now - pod.scheduled_at <= RECENT
    )
    return {
        "seconds": int(RECENT),
        "bound": len(waits),
        "rate": len(waits) / RECENT,
        "median": median_low(waits) if waits else None,
        "p99": waits[min(len(waits) - 1, len(waits) * 99 // 100)] if waits else None,
    }


def _resources(quota: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """`{name, used, guarantee, limit, part}`; `part`: of what it may use, in percent."""
    for name in sorted(quota["guarantee"].keys() | quota["limit"].keys() | quota["used"].keys()):
        used, owed, most = (quota[key].get(name) for key in ("used", "guarantee", "limit"))
        of = most or owed
        part = None if not of else round(100 * (used or 0) / of)
        yield {"name": name, "used": used or 0, "guarantee": owed, "limit": most, "part": part}


def _gangs(state: SchedulerState) -> list[dict[str, Any]]:
    """`{rule, key, pods, message, held, first}` of the gangs of which some wait, those with most pods first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for profile in state.profiles:
        for queued in state.queued(profile.scheduler_name)[1] if profile.gangs else ():
            keys = ((rule.name, rule.key(queued.pod)) for rule in profile.gangs)
            rule, key = next(((rule, key) for rule, key in keys if key is not None), ("", ""))
            if not rule:
                continue
            if (rule, key) not in found:
                message = state.last_message(queued.uid) or queued.gate_message
                about = {"message": message, "held": queued.place is Place.HELD, "first": queued.pod}
                found[rule, key] = {"rule": rule, "key": key, "pods": 0, **about}
            found[rule, key]["pods"] += 1
    return sorted(found.values(), key=lambda one: (-one["pods"], one["key"]))


def compared(moments: tuple[Moment, Moment]) -> dict[str, Any]:
    """The same moment under two policies, side by side."""
    first, second = (_places(one.state) for one in moments)
    found = [
        (key, first.get(key), second.get(key))
        for key in sorted(first.keys() | second.keys())
        if first.get(key) != second.get(key)
    ]
    return {"sides": [_side(one) for one in moments], "elsewhere": found[:PLACES], "count": len(found), "shown": PLACES}


def _places(state: SchedulerState) -> dict[str, str]:
    """Pod -> its node; empty for one that waits."""
    return {pod.key: pod.node_name for pod in state.view.pods.values() if pod.state is not PodState.GONE}


def _side(moment: Moment) -> dict[str, Any]:
    state, queue = moment.state, by_reason(moment.state)
    table = state.view.nodes
    full = [(one, nodes.fullness(table, one)) for one in nodes.offered(table)[:4]]
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
