"""Where the pending pods of one profile are, and the moves between these places.

Rules:
1. Between two calls every pod is in exactly one of gated, held, active, backoff, unschedulable and in flight.
   `QueuedPod.place` says which, and only this file writes it.
2. A move takes a pod that has been detached and leaves it in one place.
3. Whoever enters active or backoff passes the gate: a spec that can be read, then the PreEnqueue plugins in the
   profile's order, then the pod's gang. The first that does not let the pod in says why. A plugin that fails gates the
   pod too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any, NamedTuple

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.events import ClusterEvent
from policyengine.framework.profile import Profile
from policyengine.scheduler.pod_timeline import PodTimelines
from policyengine.scheduler.queue.alike_pods import in_front
from policyengine.scheduler.queue.backoff import BackoffQueue
from policyengine.scheduler.queue.fair_share import active_pods
from policyengine.scheduler.queue.gang_table import GangTable
from policyengine.scheduler.queue.node_verdicts import Help
from policyengine.scheduler.queue.queued_pods import (
    Happening,
    InFlightPods,
    Key,
    Place,
    PodHeap,
    QueuedPod,
    Strategy,
)
from policyengine.scheduler.queue.queueing_hints import UnschedulableIndex, Woken


class GateNotice(NamedTuple):
    """A pod that is kept outside the queue, and what its owner is to be told."""

    pod: QueuedPod
    message: str
    again: bool = False
    """Whether only the wording changed since it was told."""
    is_told: bool = True
    """False of what kube-scheduler does not tell either."""


class SubQueues:
    """The places of one profile's pods. `now` is in seconds."""

    def __init__(self, profile: Profile, timeline: PodTimelines, view: ClusterView) -> None:
        self.profile = profile
        """The policy that orders and filters these pods."""
        self.candidate: Profile | None = None
        """A policy that decides about some of the pods."""
        self.timeline = timeline
        self._view = view
        self.pods: dict[str, QueuedPod] = {}
        self.active_q = active_pods(profile, view)
        self.backoff_q = BackoffQueue(profile.queue)
        self.unschedulable_pods = PodHeap()
        """By `refused_at`: the flush takes the oldest first."""
        self.in_flight = InFlightPods()
        self.events = 0
        """How many have been told to refused pods."""
        self.passed_on: deque[tuple[Happening, Hashable]] = deque()
        """Events by which a pod was woken by itself of which something has become: it is the next one's turn; with what
        it has in common with the pods that were refused as it was then, if it was."""
        self.gangs = GangTable(profile.gangs)
        self.indices: list[UnschedulableIndex] = [UnschedulableIndex(profile, view)]
        """Unschedulable pods by all their refusers, gated ones by the plugin that gates them; then those that the
        candidate refused, if there is one."""
        self.notices: list[GateNotice] = []
        self.gate_log: list[PodInfo] = []
        """The pods that came to the gate since it was last emptied, if the profile logs something."""

    # ---- policies

    def replace_profile(self, profile: Profile) -> None:
        """Filter, order and wake by this profile from now on. No pod may be in a place but in flight."""
        self.profile = profile
        self.gangs = GangTable(profile.gangs)
        self.active_q = active_pods(profile, self._view)
        self.backoff_q.settings = profile.queue
        self.indices[0].replace_profile(profile)

    def replace_rules(self, profile: Profile) -> list[QueuedPod]:
        """Filter and wake by this profile from now on, whose queue is the same: all stay in their places. Answers with
        the pods that were refused, except by a candidate."""
        index = self.indices[0]
        filed = [(pod, frozenset(plugin for plugin, _ in pod.buckets if plugin)) for pod in index.pods()]
        for queued, _ in filed:
            index.remove(queued)
        self.profile = profile
        index.replace_profile(profile)
        for queued, plugins in filed:
            index.add(queued, plugins)
        return [queued for queued, _ in filed if queued.place is Place.UNSCHEDULABLE]

    def set_candidate(self, candidate: Profile | None) -> None:
        """Another policy decides about some of the pods, or none does. No pod may wait that the one before refused."""
        self.candidate = candidate
        self.indices[1:] = []
        if candidate is not None:
            self.indices.append(UnschedulableIndex(candidate, self._view))

    def index_of(self, queued: QueuedPod) -> UnschedulableIndex:
        """Where the pod waits for events: with the policy that refused it."""
        return self.indices[-1] if queued.by_candidate else self.indices[0]

    # ---- moves

    def order(self, queued: QueuedPod) -> Key:
        """The pod's key in activeQ. A pod whose key cannot be computed comes last, in order of arrival."""
        try:
            counted = (queued.attempts,) if self.profile.counts_attempts else ()
            return (False, *self.profile.queue_key(queued.pod, queued.queued_at, *counted))
        except Exception as failure:
            self.timeline.record(queued.uid, queued.queued_at, "queued last", str(failure) or type(failure).__name__)
            return (True, queued.queued_at)

    def rekey(self, queued: QueuedPod) -> None:
        """An active or backing-off pod changed: give it its new turn. One that was woken by itself may not be the first
        any more."""
        heap, turn = self.active_q if queued.place is Place.ACTIVE else self.backoff_q, self.order(queued)
        heap.push(queued, turn)
        if (turn, self._tenant(queued)) != (queued.turn, queued.tenant):
            self.pass_on(queued)

    def to_active(self, queued: QueuedPod, event: str, now: float, plugin: str = "", through_gate: bool = True) -> None:
        """Let the pod be tried, if the gate lets it in; from backoff it has passed the gate before."""
        if through_gate and not self._passes_gate(queued, now):
            return
        self.active_q.push(queued, self.order(queued))
        queued.place = Place.ACTIVE
        self.timeline.record(queued.uid, now, "woken" if queued.attempts else "queued", "active", event, plugin)

    def requeue(self, queued: QueuedPod, strategy: Strategy, event: str, plugin: str, now: float) -> None:
        """Let a detached pod be tried again as `strategy` says."""
        if strategy is Strategy.SKIP:
            held = self.gangs.hold_message(queued.uid)
            if held:
                self.keep_out(queued, Place.HELD, "", held, now)
            else:
                self.to_unschedulable(queued)
        elif strategy is Strategy.AFTER_BACKOFF and self.backoff_q.is_backing_off(queued, now):
            if self._passes_gate(queued, now):
                queued.place = Place.BACKOFF
                self.backoff_q.push(queued, self.order(queued))
                self.timeline.record(queued.uid, now, "woken", "backoff", event, plugin)
        else:
            self.to_active(queued, event, now, plugin)

    def wake(self, queued: QueuedPod, strategy: Strategy, event: str, plugin: str, now: float) -> None:
        """Take the pod out of its place and requeue it."""
        self.detach(queued)
        self.requeue(queued, strategy, event, plugin, now)

    def to_unschedulable(self, queued: QueuedPod) -> None:
        """Let the pod wait for an event that one of its refusers registered."""
        queued.place = Place.UNSCHEDULABLE
        queued.turn, queued.backs_off_until = self.order(queued), self.backoff_q.expiry(queued)
        queued.tenant = self._tenant(queued)
        self.unschedulable_pods.push(queued, (queued.refused_at,))
        self.index_of(queued).add(queued, queued.unschedulable_plugins)

    def keep_out(
        self, queued: QueuedPod, place: Place, plugin: str, message: str, now: float, is_told: bool = True
    ) -> None:
        """Let the pod wait outside, GATED or HELD, and have its owner told, where it `is_told`, if the reason is news.
        `plugin`: the one that gates it; empty if no plugin's event can help."""
        queued.place = place
        if plugin:
            queued.seen, queued.refused_after = self._view.scheduling.last_reservation, self.events
            queued.by_candidate = False
            self.indices[0].add(queued, frozenset({plugin}))
        if message != queued.gate_message:
            queued.gate_message = message
            self.notices.append(GateNotice(queued, message, is_told=is_told))
            self.timeline.record(queued.uid, now, place.value, *((plugin,) if place is Place.GATED else ()), message)

    def detach(self, queued: QueuedPod) -> None:
        """Take the pod out of its place."""
        for place in (self.in_flight, self.active_q, self.backoff_q, self.unschedulable_pods):
            if place.discard(queued.uid):
                break
        if queued.buckets:
            self.index_of(queued).remove(queued)
        queued.place = Place.NOWHERE
        self.pass_on(queued)

    def move(self, event: ClusterEvent, old: Any, new: Any, now: float, but: str = "", undoes: int = 0) -> None:
        """Something happened in the cluster: wake the pods that it may help (MoveAllToActiveOrBackoffQueue), except
        the pod `but`, and those refused before the reservation was made that this undoes."""
        self.events += 1
        happening = Happening(event, old, new, but, undoes, self.events)
        self.wake_by(happening, now)
        self.in_flight.record(happening)

    def wake_by(self, happening: Happening, now: float, refused: Hashable = None) -> None:
        """Wake the pods that an event may help; of those that find room on its node only the first of each tenant, by
        whose shares the active queue chooses, or those that may come first. `refused`: of whom one was, all the same;
        the others are woken with one look, not with one look each."""
        event, old, new = happening.event, happening.old, happening.new
        woken = [one for index in self.indices if index.buckets for one in index.woken_by(event, old, new)]
        in_turn: dict[str, dict[str, tuple[QueuedPod, Woken]]] = {}
        at_once: dict[str, tuple[QueuedPod, Woken]] = {}
        for one in sorted(woken, key=lambda one: one.strategy.value):
            if one.help is Help.ROOM and one.pods.any().alike != refused:
                for pod in one.pods.firsts(happening, now):
                    in_turn.setdefault(pod.tenant, {})[pod.uid] = pod, one
            else:
                at_once |= {pod.uid: (pod, one) for pod in one.pods.helped_by(happening)}
        for pod, one in at_once.values():
            self.wake(pod, one.strategy, event.label, one.asked_by, now)
            for firsts in in_turn.values():
                firsts.pop(pod.uid, None)
        for firsts in in_turn.values():
            for pod in in_front([pod for pod, _ in firsts.values()], now):
                one = firsts[pod.uid][1]
                self.wake(pod, one.strategy, event.label, one.asked_by, now)
                if pod.place in (Place.ACTIVE, Place.BACKOFF):
                    pod.woken_by = happening
                else:
                    self.passed_on.append((happening, None))

    def pass_on(self, queued: QueuedPod) -> None:
        """Something became of a pod that was woken by itself: it is the turn of those like it."""
        if queued.woken_by is not None:
            self.passed_on.append((queued.woken_by, queued.alike))
            queued.woken_by = None

    # ---- what is known

    def _tenant(self, queued: QueuedPod) -> str:
        return "" if self.profile.fair is None else self.profile.fair.tenant(queued.pod)

    def counts(self) -> dict[str, int]:
        """How many pods are in each place, by the place's name."""
        found = {place.value: 0 for place in Place if place is not Place.NOWHERE}
        for queued in self.pods.values():
            found[queued.place.value] += 1
        return found

    def _passes_gate(self, queued: QueuedPod, now: float) -> bool:
        """Rule 3."""
        refused = self._refusal_at_gate(queued.pod)
        if refused is None:
            queued.gate_message = ""
            return True
        place, plugin, message, is_told = refused
        self.keep_out(queued, place, plugin, message, now, is_told)
        return False

    def _refusal_at_gate(self, pod: PodInfo) -> tuple[Place, str, str, bool] | None:
        """Where the pod waits, the PreEnqueue plugin that keeps it out, why, and whether the owner is told: of what a
        plugin refuses nobody is (`runPreEnqueuePlugin`). None if it may enter."""
        if self.profile.logs:
            self.gate_log.append(pod)
        if pod.shape.problem is not None:
            return Place.GATED, "", pod.shape.problem, True
        for plugin in self.profile.pre_enqueue:
            try:
                status = plugin.pre_enqueue(pod, self._view.snapshot())
            except Exception as failure:
                return Place.GATED, plugin.name, f'running PreEnqueue plugin "{plugin.name}": {failure}', True
            if not status.is_success:
                return Place.GATED, plugin.name, status.message, False
        held = self.gangs.hold_message(pod.uid) if self.profile.gangs else ""
        return (Place.HELD, "", held, True) if held else None
