"""The pods that wait: where, and for what reason, each in a few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.scheduler.queue.queued_pods import Place, QueuedPod
from policyengine.scheduler.state import SchedulerState

UNSERVED: Final = "unserved"
RESERVED: Final = "has a node"
REASONS: Final = 12
"""Reasons of one place that are told apart; the rest is counted together."""
REST: Final = "other reasons"
_SAID: Final = {Place.ACTIVE: "waits for its turn", Place.IN_FLIGHT: "is being tried"}


class Waiting(NamedTuple):
    """One pod that is not bound."""

    pod: PodInfo
    place: str
    """As `SchedulerState.place` has it; `has a node` where it waits at Permit, for volumes or for its binding."""
    reason: str
    queued: QueuedPod | None


def waiting(state: SchedulerState) -> Iterator[Waiting]:
    """All of them; those of each queue in the order of their turns, the active ones first."""
    served = set()
    for profile in state.profiles:
        served.add(profile.scheduler_name)
        active, others = state.queued(profile.scheduler_name)
        for queued in (*active, *others):
            yield Waiting(queued.pod, queued.place.value, _reason(state, queued), queued)
    for pod in state.view.pods.values():
        if pod.state is PodState.ASSUMED:
            yield Waiting(pod, RESERVED, state.place(pod.uid), None)
        elif pod.state is PodState.PENDING and pod.scheduler_name not in served:
            yield Waiting(pod, UNSERVED, _said(pod) or f"nobody here serves {pod.scheduler_name}", None)


def _reason(state: SchedulerState, queued: QueuedPod) -> str:
    if queued.place in _SAID:
        return (not queued.attempts and _said(queued.pod)) or _SAID[queued.place]
    if queued.place in (Place.GATED, Place.HELD):
        return queued.gate_message or state.last_message(queued.uid) or queued.place.value
    if queued.unschedulable_plugins:
        return ", ".join(sorted(queued.unschedulable_plugins))
    return "an error" if queued.error_count else "not tried yet"


def _said(pod: PodInfo) -> str:
    """What the pod's own condition says of why it waits."""
    return next((one.message for one in pod.conditions if one.type == "PodScheduled"), "")


def by_reason(state: SchedulerState) -> list[dict[str, Any]]:
    """`{scheduler, place, count, reasons: [(reason, count)]}`, by scheduler and place; the most frequent reason
    first."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for one in waiting(state):
        counts.setdefault((one.pod.scheduler_name, one.place), Counter())[one.reason] += 1
    return [
        {"scheduler": scheduler, "place": place, "count": found.total(), "reasons": _most(found)}
        for (scheduler, place), found in sorted(counts.items())
    ]


def _most(found: Counter[str]) -> list[tuple[str, int]]:
    shown = found.most_common(REASONS)
    rest = found.total() - sum(count for _, count in shown)
    return [*shown, (REST, rest)] if rest else shown
