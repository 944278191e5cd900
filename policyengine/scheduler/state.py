"""The door of the core: a message and the time in, actions out.

No clock, socket, thread or randomness: a log of (message, now) pairs reproduces every decision. `now` is in
seconds since the epoch and must not go back; a runner derives it from a monotonic clock.

    state = SchedulerState([profile])
    actions = state.handle(PodObserved(pod), now)

Cycles run only when asked for (`CyclesRequested`) and only after `CacheSynced`. `next_wakeup` says when the next
`Tick` is due, `ready` whether a cycle would find a pod to try. What each message does stands in the file named
in the table below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any

from policyengine.cluster.pod_info import PodState
from policyengine.cluster.view import ClusterView
from policyengine.framework.profile import Profile
from policyengine.scheduler import candidate_cycles, cycle, event_handlers, messages, policy_changes, preempt
from policyengine.scheduler.actions import Action
from policyengine.scheduler.binding import bind_result, prebind, verification
from policyengine.scheduler.core import Core
from policyengine.scheduler.extender import Extender
from policyengine.scheduler.gangs import gang_cycle, gang_release, node_choice, pod_group_status
from policyengine.scheduler.messages import Message
from policyengine.scheduler.other_schedulers import Neighbour, UnverifiedBindings
from policyengine.scheduler.placement import ask_permit, time_out
from policyengine.scheduler.pod_timeline import Observer, Placement, TimelineEntry
from policyengine.scheduler.profiles import Version
from policyengine.scheduler.queue.fair_share import FairPods
from policyengine.scheduler.queue.queued_pods import Place, QueuedPod
from policyengine.scheduler.reservations import Phase
from policyengine.scheduler.rollout import Rollout

_GONE_BACK = "the API server has gone back to an older copy"


class SchedulerState:
    """The scheduler, as a value that changes by messages."""

    def __init__(
        self, profiles: Iterable[Profile] = (), extenders: Iterable[Extender] = (), verifies_bindings: bool = False
    ) -> None:
        """`profiles` serve from the start, as if a `ProfileReplaced` had come for each. `verifies_bindings`: whether a
        pod that turns out not to fit beside what others bound meanwhile is evicted before it starts."""
        self._core = Core()
        self._core.unverified = UnverifiedBindings() if verifies_bindings else None
        self._core.extenders = tuple(extenders)
        for profile in profiles:
            policy_changes.profile_replaced(self._core, messages.ProfileReplaced(profile))

    def handle(self, message: Message, now: float) -> list[Action]:
        """Take one message in; say what to do, in this order."""
        core = self._core
        actions: list[Action] = []
        core.now = core.view.now = now
        core.actions = actions
        _HANDLERS[type(message)](core, message)
        _finish(core)
        return actions

    @property
    def ready(self) -> bool:
        """Whether a cycle would find a pod to try."""
        core = self._core
        return core.is_synced and any(one.is_served and one.queue.has_work for one in core.profiles.values())

    @property
    def has_decided(self) -> bool:
        """Whether the last cycle's decision is to be compared: a `ComparisonRequested` is due before anything else."""
        return self._core.decided is not None

    def next_wakeup(self, now: float = 0.0) -> float | None:
        """When the next `Tick` is due, on the clock `handle` is given, but not before `now`; None for never."""
        core = self._core
        verified = inf if core.unverified is None else core.unverified.next_wakeup()
        times = [
            core.gang_overdue_at,
            verified,
            *(one.queue.next_wakeup() for one in core.profiles.values() if one.is_served),
        ]
        if core.bindings.unsettled:
            times += core.bindings.times()
        if core.waiting_pods:
            times += core.waiting_pods.times()
        due = min(times)
        return None if due == inf else max(due, now)

    def may_bind(self, uid: str) -> bool:
        """Whether a `Bind` of this pod still stands. A runner asks right before it posts it; told no, it answers with
        `BindFailed(uid, BindFailure.WITHDRAWN, …)`, told yes, the binding counts as on its way.
        """
        decision = self._core.bindings.get(uid)
        if decision is None or decision.phase is not Phase.POSTED or decision.withdrawn or not self._core.is_synced:
            return False
        pod = self._core.view.pods.get(uid)
        if pod is not None and pod.state is PodState.BOUND:
            return False  # somebody else was faster, or an earlier request of ours has landed
        decision.is_sent = True
        return True

    @property
    def view(self) -> ClusterView:
        """The cluster as known; to read from."""
        return self._core.view

    @property
    def profiles(self) -> list[Profile]:
        """The profiles that serve."""
        return [served.runtime.profile for served in self._core.profiles.values() if served.is_served]

    @property
    def extenders(self) -> tuple[Extender, ...]:
        """Who else is asked."""
        return self._core.extenders

    def versions(self, scheduler_name: str) -> list[Version]:
        """The policies that served the scheduler name, as far as they are remembered, the last one last."""
        served = self._core.profiles.get(scheduler_name)
        return [] if served is None else list(served.versions)

    @property
    def rollouts(self) -> dict[str, Rollout]:
        """The candidates that are tried, or were until they were suspended, by scheduler name; to read from."""
        return {name: one.rollout for name, one in self._core.profiles.items() if one.rollout is not None}

    @property
    def verifies_bindings(self) -> bool:
        """Whether pods that turn out not to fit beside what others bound are evicted."""
        return self._core.unverified is not None

    @property
    def neighbours(self) -> Mapping[str, Neighbour]:
        """Who else binds pods to nodes that are scheduled onto here, by the pods' scheduler name."""
        return self._core.neighbours

    def pending_counts(self, scheduler_name: str) -> dict[str, int]:
        """How many pods are in each place of one queue: gated, held, active, backoff, unschedulable, in flight."""
        served = self._core.profiles.get(scheduler_name)
        return {} if served is None else served.queue.counts()

    def queued(self, scheduler_name: str) -> tuple[list[QueuedPod], list[QueuedPod]]:
        """The pods of one queue: the active ones, whose turn is next first if no share changed, and all others. To
        read from."""
        served = self._core.profiles.get(scheduler_name)
        if served is None:
            return [], []
        return served.queue.active_q.in_order(), [
            one for one in served.queue.pods.values() if one.place is not Place.ACTIVE
        ]

    def shares(self, scheduler_name: str) -> dict[str, float]:
        """The dominant share of each tenant, divided by its weight; empty for a policy without `fair by`."""
        served = self._core.profiles.get(scheduler_name)
        active = None if served is None else served.queue.active_q
        return active.shares() if isinstance(active, FairPods) else {}

    def last_message(self, uid: str) -> str:
        """What was last said of why the pod waits, of a held one how far its gang is now; empty where nothing was."""
        for served in self._core.profiles.values():
            queued, gang = served.queue.pods.get(uid), served.queue.gang_of(uid)
            if queued is not None and queued.place is Place.HELD and gang is not None:
                return gang.message
        return self._core.timeline.last_message(uid)

    def break_ties_by(self, known_as: Callable[[str], str]) -> None:
        """Have names count as others where they break a tie: as those under which a redacted recording has
        them. To be called between two messages, and not once a pod has been placed."""
        self._core.view.nodes.break_ties_by(known_as)

    @property
    def bindings_under_way(self) -> int:
        """How many bindings have no known outcome yet."""
        return len(self._core.bindings)

    @property
    def awaits_overdue_gang(self) -> bool:
        """Whether a gang that is bound in part will be tried again by the passing of time alone."""
        return self._core.gang_overdue_at < inf

    def place(self, uid: str) -> str:
        """Where the pod is: a place of its queue, `waiting at permit`, `waiting at prebind`, `binding`, `bound`,
        `unserved`, or `unknown`."""
        core = self._core
        if uid in core.waiting_pods:
            return "waiting at permit"
        decision = core.bindings.get(uid)
        if decision is not None and decision.phase is Phase.PREPARING:
            return "waiting at prebind"
        if decision is not None or uid in core.confirmed:
            return "binding"
        pod = core.view.pods.get(uid)
        if pod is None:
            return "unknown"
        if pod.state is PodState.BOUND:
            return "bound"
        served = core.profile_of(pod)
        queued = None if served is None else served.queue.pods.get(uid)
        if served is None or not served.is_served or queued is None:
            return "being deleted" if pod.deleting else "unserved"
        return queued.place.value

    def timeline(self, uid: str) -> list[TimelineEntry]:
        """What happened to the pod, oldest line first."""
        return self._core.timeline.of(uid)

    def placement(self, uid: str) -> Placement | None:
        """What was decided when the pod was given a node last, and why; None where nothing is known of it any more."""
        return self._core.placements.of(uid)

    def recent_placements(self) -> Iterator[tuple[str, Placement]]:
        """(pod's UID, its last placement) of those that are kept, the newest first."""
        return self._core.placements.newest_first()

    def listen(self, listener: Callable[[str, TimelineEntry], None] | None) -> None:
        """Call `listener` with (UID, entry) for every entry of every pod's timeline, as they happen; None ends it."""
        self._core.timeline.listener = listener

    def observe(self, observer: Observer) -> None:
        """Have every line, and how far each attempt has come, told to `observer` as it happens, unworded."""
        self._core.timeline.observer = observer

    def usage(self) -> Iterator[tuple[Profile, str, str, int, int]]:
        """(profile, plugin, extension point, how often it was asked about a pod, how often that meant work) since the
        profile serves."""
        for served in self._core.profiles.values():
            if served.is_served:
                for used in served.runtime.evaluator.usage():
                    yield served.runtime.profile, *used

    def queue_position(self, uid: str) -> int | None:
        """How many active pods of its queue come before the pod; None when it is not active. O(n)."""
        ranks = (served.queue.active_q.rank(uid) for served in self._core.profiles.values())
        return next((rank for rank in ranks if rank is not None), None)


def _finish(core: Core) -> None:
    """What every message ends with. Until the first lists are in no owner is told why a pod is kept outside: the
    missing members of a gang may just not have been listed yet."""
    if core.tried_early:
        preempt.try_again_now_over(core)
    if core.reserved_room is not None or any(served.queue.has_deferred_work for served in core.profiles.values()):
        _review_gangs(core)
        for served in core.profiles.values():
            served.queue.wake_the_next(core.now)
            for pod in served.queue.take_gate_log():
                core.log(served.runtime, "preEnqueue", pod)
        if core.is_synced:
            core.tell_kept_out()
    if core.pod_groups.changed and core.is_synced:
        pod_group_status.write(core)


def _review_gangs(core: Core) -> None:
    """Gangs that changed are let go or taken back; room that was reserved for one that needs none is given up."""
    for served in core.profiles.values():
        if served.queue.gangs.changed:
            gang_release.settle(core)
            break
    if core.reserved_room is not None:
        node_choice.review(core, core.reserved_room)


def _cache_synced(core: Core, message: messages.CacheSynced) -> None:
    core.is_synced = True
    verification.take_over(core)
    if message.unwritten_since is not None:
        bind_result.tell_again(core, message.unwritten_since)


def _cache_lost(core: Core, message: messages.CacheLost) -> None:
    """What is prepared was prepared for objects as they were: those decisions are made again."""
    core.is_synced = False
    for decision in [one for one in core.bindings.values() if one.phase is Phase.PREPARING]:
        core.bindings.end(decision.bind.uid)
        core.release(decision.held, _GONE_BACK)
        bind_result.fail_quietly(core, decision, _GONE_BACK, 0.0)


def _object_patch_failed(core: Core, message: messages.ObjectPatchFailed) -> None:
    if message.asked.plugin == pod_group_status.WRITER:
        pod_group_status.not_written(core, message.asked)
    else:
        prebind.object_patch_failed(core, message)


def _tick(core: Core, message: messages.Tick) -> None:
    """Backoffs, flushes, permits and reads that are due."""
    for served in core.profiles.values():
        if served.is_served:
            served.queue.advance(core.now)
    if core.unverified is not None:
        verification.look_again(core, core.unverified)
    if core.gang_overdue_at <= core.now:
        gang_cycle.try_again_overdue(core)
    if core.waiting_pods:
        for waiting in core.waiting_pods.due(core.now):
            core.waiting_pods.pop(waiting.held.queued.uid, None)
            if waiting.is_to_be_asked(core.now):
                ask_permit(core, waiting.held, again=True)
            else:
                time_out(core, waiting)
    if core.bindings.unsettled:
        for decision in core.bindings.due(core.now):
            if decision.phase is Phase.READING:
                bind_result.read(core, decision)
            else:
                prebind.ask_again(core, decision)


def _cycles_requested(core: Core, message: messages.CyclesRequested) -> None:
    _tick(core, messages.Tick())
    if not core.is_synced:
        return
    core.decided = None
    compares = any(one.rollout is not None and one.rollout.is_tried for one in core.profiles.values())
    for _ in range(min(1, message.limit) if compares else message.limit):
        served = cycle.next_turn(core)
        queued = None if served is None else served.queue.pop(core.now)
        if served is None or queued is None:
            return
        if served.rollout is None:
            cycle.run_cycle(core, served, queued)
        else:
            candidate_cycles.run(core, served, queued)
        _review_gangs(core)
        served.queue.wake_the_next(core.now)  # before those that come behind them in the queue's order


_HANDLERS: dict[type, Callable[[Core, Any], None]] = {
    messages.NodeObserved: event_handlers.node_observed,
    messages.NodeDeleted: event_handlers.node_deleted,
    messages.PodObserved: event_handlers.pod_observed,
    messages.PodDeleted: event_handlers.pod_deleted,
    messages.ObjectObserved: event_handlers.object_observed,
    messages.ObjectDeleted: event_handlers.object_deleted,
    messages.DemandRemembered: lambda core, message: core.view.demand.restore(message.saved),
    messages.CacheSynced: _cache_synced,
    messages.CacheLost: _cache_lost,
    messages.ProfileReplaced: policy_changes.profile_replaced,
    messages.ProfileRemoved: policy_changes.profile_removed,
    messages.CandidateLoaded: candidate_cycles.candidate_loaded,
    messages.CandidateRemoved: candidate_cycles.candidate_removed,
    messages.BindSucceeded: bind_result.bind_succeeded,
    messages.BindFailed: bind_result.bind_failed,
    messages.BindUnknown: bind_result.bind_unknown,
    messages.ObjectPatched: prebind.object_patched,
    messages.ObjectPatchFailed: _object_patch_failed,
    messages.VictimDeleted: preempt.victim_deleted,
    messages.VictimNotDeleted: preempt.victim_not_deleted,
    messages.ExtendersAnswered: cycle.extenders_answered,
    messages.VictimsAnswered: cycle.victims_answered,
    messages.PodRead: event_handlers.pod_read,
    messages.ReadPodFailed: bind_result.read_pod_failed,
    messages.NodePodsRead: event_handlers.node_pods_read,
    messages.ReadNodePodsFailed: bind_result.read_node_pods_failed,
    messages.Tick: _tick,
    messages.CyclesRequested: _cycles_requested,
    messages.ComparisonRequested: candidate_cycles.comparison_requested,
    messages.ComparisonTimed: candidate_cycles.comparison_timed,
}
"""Message -> the function that handles it."""
