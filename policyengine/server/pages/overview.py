"""The overview: what is bound, what waits and why, how full the nodes are, quotas, gangs, candidates, policies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from statistics import median_low
from typing import Any, Final

from policyengine.cluster.pod_info import PodState
from policyengine.framework.profile import Profile
from policyengine.scheduler.queue.queued_pods import Place
from policyengine.scheduler.state import SchedulerState
from policyengine.server import policy_pages
from policyengine.server.pages import heat
from policyengine.server.pages.source import Asked, Moment
from policyengine.server.pages.waiting import by_reason

RECENT: Final = 60.0
"""Seconds over which bindings and waits are told."""
SHOWN: Final = 50
"""Quotas, gangs and tenants that are listed."""


def content(moment: Moment, asked: Asked) -> dict[str, Any]:
    """What the template shows."""
    state = moment.state
    queue = by_reason(state)
    quota = policy_pages.quota(state)
    gangs = _gangs(state)
    return {
        **heat.content(state, asked),
        "recent": recent(state, moment.now),
        "charts": [{**one, "mark": moment.now} for one in moment.charts],
        "queue": queue,
        "waiting": sum(one["count"] for one in queue),
        "pods": len(state.view.pods),
        "quotas": [one | {"resources": list(_resources(one))} for one in quota["quotas"][:SHOWN]],
        "left_out": {"quotas": max(0, len(quota["quotas"]) - SHOWN), "gangs": max(0, len(gangs) - SHOWN)},
        "tenants": sorted(quota["tenants"], key=lambda one: -one["share"])[:SHOWN],
        "gangs": gangs[:SHOWN],
        "rollouts": policy_pages.rollout(state)["rollouts"],
        "policies": policy_pages.status(state, moment.standings),
        "ages": {one.scheduler_name: age(moment, one.scheduler_name) for one in state.profiles},
    }


def age(moment: Moment, scheduler_name: str) -> float | None:
    """Seconds since the policy that serves the scheduler name does; None where it did from the start."""
    versions = moment.state.versions(scheduler_name)
    return moment.now - versions[-1].since if versions and versions[-1].since else None


def recent(state: SchedulerState, now: float) -> dict[str, Any]:
    """`{seconds, bound, rate, median, p99}` of the pods that were given a node in the last minute: by this scheduler,
    or, where it gave none, by whom their conditions tell of. Times in seconds; None where there are none."""
    waits = sorted(_waits(state, now)) or sorted(
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


def _waits(state: SchedulerState, now: float) -> Iterator[float]:
    for _, placed in takewhile(lambda one: now - one[1].at <= RECENT, state.recent_placements()):
        yield max(0.0, placed.at - placed.queued_at)


def _resources(quota: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """`{name, used, guarantee, limit, part}`; `part`: of what it may use, in percent."""
    for name in sorted(quota["guarantee"].keys() | quota["limit"].keys() | quota["used"].keys()):
        used, owed, most = (quota[key].get(name) for key in ("used", "guarantee", "limit"))
        of = most or owed
        part = None if not of else round(100 * (used or 0) / of)
        yield {"name": name, "used": used or 0, "guarantee": owed, "limit": most, "part": part}


def _gangs(state: SchedulerState) -> list[dict[str, Any]]:
    """`{rule, key, pods, message, first}` of the gangs of which some wait, those with most pods first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for profile in state.profiles:
        if not profile.gangs:
            continue
        for queued in state.queued(profile.scheduler_name)[1]:
            named = _gang(profile, queued.pod)
            if named is None:
                continue
            gang = found.get(named)
            if gang is None:
                message = state.last_message(queued.uid) or queued.gate_message
                held = queued.place is Place.HELD
                gang = {"rule": named[0], "key": named[1], "pods": 0, "message": message, "held": held}
                gang["first"] = queued.pod
                found[named] = gang
            gang["pods"] += 1
    return sorted(found.values(), key=lambda one: (-one["pods"], one["key"]))


def _gang(profile: Profile, pod: Any) -> tuple[str, str] | None:
    for rule in profile.gangs:
        key = rule.key(pod)
        if key is not None:
            return rule.name, key
    return None
