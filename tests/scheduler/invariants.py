"""The invariants of `core` and all below, asserted."""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.cluster.pod_info import PodState
from policyengine.scheduler.core import Core
from policyengine.scheduler.queue.fair_share import FairPods
from policyengine.scheduler.queue.gang_table import GangTable
from policyengine.scheduler.queue.queued_pods import Place, QueuedPod
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue
from policyengine.scheduler.reservations import Phase
from policyengine.scheduler.state import SchedulerState
from tests.cluster.consistency import validate_view
from tests.cluster.view_dump import assumption_owners


def validate(state: SchedulerState) -> None:
    """AssertionError names the first invariant that does not hold."""
    core = state._core
    validate_view(core.view)
    for served in core.profiles.values():
        validate_queue(served.queue)
        canary = served.rollout if served.rollout is not None and served.rollout.decides else None
        assert served.queue.candidate is (None if canary is None else canary.profile), "the queue knows no canary"
    for pod in core.view.pods.values():
        served_ = core.profile_of(pod)
        here = [name for name, found in _whereabouts(core, pod.uid) if found]
        if pod.state is PodState.BOUND:
            here = [name for name in here if name != "binding"]  # the watch may be faster than the answer
            assert not here, f"{pod!r} is bound and {here}"
        elif pod.state is PodState.ASSUMED:
            expected = (["binding"], ["confirmed"], ["queue", "permit"])
            assert here in expected, f"{pod!r} is reserved and {here or 'nowhere'}"
        elif served_ is not None and not pod.deleting:
            assert here == ["queue"], f"{pod!r} is pending and {here or 'nowhere'}"
        else:
            assert not here, f"{pod!r} is not ours to place and {here}"
    _validate_reservations(core)
    _validate_gangs(core)
    for uid in core.nominations:
        nominee = core.view.pods.get(uid)
        assert nominee is not None and nominee.state is PodState.PENDING, f"`{uid}` is nominated and does not wait"


def _whereabouts(core: Core, uid: str) -> list[tuple[str, bool]]:
    return [
        ("queue", any(uid in served.queue.pods for served in core.profiles.values())),
        ("permit", uid in core.waiting_pods),
        ("binding", uid in core.bindings),
        ("confirmed", uid in core.confirmed),
    ]


def _validate_reservations(core: Core) -> None:
    for served in core.profiles.values():
        for queued in served.queue.pods.values():
            assert core.view.pods.get(queued.uid) is queued.pod, f"{queued!r} is not what the view knows"
    for decision in core.bindings.values():
        pod = core.view.pods.get(decision.bind.uid)
        assert pod is not None, f"a binding of `{decision.bind.name}` is under way and the pod is gone"
        assert pod.node_name == decision.bind.node, f"{pod!r} is being bound to {decision.bind.node}"
        waits = bool(decision.steps) and (decision.awaits_gang or not decision.is_prepared)
        assert waits == (decision.phase is Phase.PREPARING), f"{pod!r} is prepared or is it not"
        settled = decision.phase is Phase.POSTED
        assert settled is (decision.bind.uid not in core.bindings.unsettled), f"{pod!r} is {decision.phase.value}"
    assert core.bindings.unsettled.keys() <= core.bindings.keys(), "a binding that has ended is looked at"
    for uid in assumption_owners(core.view):
        assert uid in core.bindings or uid in core.waiting_pods, f"objects are assumed for {uid}, which has no room"


def _validate_gangs(core: Core) -> None:
    """No gang has placed members by count that have no place; none holds room for fewer than it takes."""
    for served in core.profiles.values():
        for gang in served.queue.gangs:
            placed = {uid for uid in gang.members if core.view.pods[uid].state is not PodState.PENDING}
            assert gang.placed == placed, f"gang {gang.key} counts {gang.placed} as placed, not {placed}"
            waiting = [uid for uid in placed if uid in core.waiting_pods]
            if waiting and gang.minimum > 1:
                assert len(placed) >= gang.minimum, f"gang {gang.key} keeps {waiting} waiting for nobody"
    kept = core.reserved_room
    if kept is not None:
        assert kept.is_due(), f"room is kept for gang {kept.gang.key}, which needs none"


def validate_queue(queue: SchedulingQueue) -> None:
    """Every pod is in the one place that it says, no place knows a pod which the queue does not, and gangs count just
    their members."""
    found: dict[str, Place] = {}
    for place, queued in _everywhere(queue):
        assert queued.uid not in found, f"{queued!r} is also {found[queued.uid].value}"
        assert queued.place is place, f"{queued!r} lies in {place.value}"
        assert queue.pods.get(queued.uid) is queued, f"{queued!r} is not of this queue"
        found[queued.uid] = place
    for queued in queue.pods.values():
        outside = queued.place in (Place.GATED, Place.HELD)
        assert queued.uid in found or outside, f"{queued!r} is not where it says"
        waits = queued.place in (Place.UNSCHEDULABLE, Place.GATED)
        assert waits or not queued.buckets, f"{queued!r} waits for events"
    validate_gangs(queue.gangs)


def _everywhere(queue: SchedulingQueue) -> Iterator[tuple[Place, QueuedPod]]:
    active = queue.active_q
    heaps = [
        *((Place.ACTIVE, heap) for heap in (active._pods.values() if isinstance(active, FairPods) else (active,))),
        *((Place.BACKOFF, heap) for heap in (queue.backoff_q.refusals, queue.backoff_q._errors)),
        (Place.UNSCHEDULABLE, queue.unschedulable_pods),
    ]
    yield from ((place, queued) for place, heap in heaps for queued in heap.in_order())
    yield from ((Place.IN_FLIGHT, queued) for queued, _ in queue.in_flight._running.values())


def validate_gangs(table: GangTable) -> None:
    for gang in table._gangs.values():
        assert not gang.is_empty, f"gang {gang.rule} {gang.key} has no members"
        assert gang.is_complete == (len(gang.members) >= gang.minimum), f"gang {gang.key}: {gang.message}"
        assert gang.wanted == max((terms.minimum for terms in gang.members.values()), default=1)
        assert gang.timeout == min((terms.timeout for terms in gang.members.values()), default=0.0)
        assert gang.placed <= gang.members.keys(), f"gang {gang.key} has placed strangers"
    counted = (len(gang.members) + len(gang.elsewhere) + len(gang.awaited) for gang in table._gangs.values())
    assert sum(counted) == len(table._gang_of)
