"""The scheduling queue of one profile: which pending pod is tried next.

    add ──> gated / held ──> active <── backoff <── unschedulable
                               │ pop       ^              ^
                               v           │   refused, nothing happened meanwhile
                           in flight ──────┴──────────────┘ ──> (reserved: the pod leaves the queue)

Rules (kube-scheduler's backend/queue/scheduling_queue.go, v1.36, whose names are kept):
1. Every way into active or backoff passes the gate, except from backoff to active (`sub_queues`).
2. A refused pod waits in unschedulable until an event that its refusers registered wakes it, or until it has waited
   `flush_after` seconds. The flush runs every `FLUSH_PERIOD` seconds, and takes one of those that are alike. A pod that
   is refused when only the flush has it tried keeps its turn and does not back off: nothing has happened by which
   others go before it.
3. A woken pod goes to backoff while its backoff lasts, else to active; Pending plugins skip the backoff.
4. A pod that failed by an error, or was refused by no plugin in particular, goes to backoff at once.
5. An event that arrives during an attempt is held against the attempt's refusal.
6. An empty active queue takes from backoff before its time.
7. Members of a gang that became too small are held; those of a gang that became complete are let in.
8. A member that comes is told how far its gang is; those that are held already, once no member has come or gone for
   `GANG_MESSAGE_AFTER` seconds, at the latest `GANG_MESSAGE_BY` seconds after the first: a gang of a thousand members
   that arrive one by one would otherwise cost half a million condition patches.
9. The room of a node goes to one pod after the other: of those that one event may help on its node, as far as that is
   known, only the first is woken, or those that may come first where some back off. Once it is placed, or something
   else has become of it, the next is, if the node still takes it; where it was refused, all are that were refused
   alike. One event has nobody tried twice.

Example: p is refused by NodeResourcesFit at 10.0 s and waits in unschedulable. At 10.3 s a pod is deleted, which
NodeResourcesFit registered for: p goes to backoff, whose first wait of 1 s ends with the second 11. At 12.0 s p is
active and can be popped. Without the deletion the flush at 330 s would have made it active.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import floor, inf

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.events import FLUSH, MINUTE_PASSED, ClusterEvent
from policyengine.framework.profile import Profile
from policyengine.scheduler.pod_timeline import PodTimelines
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.queue.queued_pods import NO_PLUGINS, Happening, Place, QueuedPod, Strategy
from policyengine.scheduler.queue.sub_queues import GateNotice, SubQueues

ADDED, UPDATED = "UnschedulablePodAdd", "UnschedulablePodUpdate"
FLUSH_PERIOD = 30.0
GANG_MESSAGE_AFTER, GANG_MESSAGE_BY = 5.0, 60.0
_QUEUED = frozenset({Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE})


class SchedulingQueue(SubQueues):
    """The pending pods of one profile. Methods take `now` in seconds; it must not go back."""

    def __init__(self, profile: Profile, timeline: PodTimelines, view: ClusterView, now: float) -> None:
        super().__init__(profile, timeline, view)
        self._next_flush = _next_multiple(FLUSH_PERIOD, now)
        self._next_minute = _next_multiple(60.0, now)
        self._next_gang_messages = self._untold_since = inf
        self._untold: dict[tuple[str, str], Gang] = {}
        """Gangs whose held members are to be told how far they are, and since when there are any."""

    @property
    def has_work(self) -> bool:
        """Whether a pod may be tried, if only one in backoff for want of anything else."""
        return bool(self.active_q) or bool(self.backoff_q.refusals)

    @property
    def has_deferred_work(self) -> bool:
        """Whether something is left to be done before the message at hand is: gangs, notices, lines to log, pods to be
        woken after others."""
        return bool(self.gangs.changed or self.notices or self.gate_log or self.passed_on)

    def take_notices(self) -> list[GateNotice]:
        """The pods kept outside since the last call, and why."""
        taken, self.notices = self.notices, []
        return taken

    def take_gate_log(self) -> list[PodInfo]:
        """The pods that came to the gate since the last call, if the profile logs that."""
        taken, self.gate_log = self.gate_log, []
        return taken

    # ---- pods come, change and go

    def add(self, pod: PodInfo, now: float, event: str = ADDED) -> QueuedPod:
        """A pending pod appeared. `observe_member` has been told of it before."""
        assert pod.uid not in self.pods, f"`{pod.namespace}/{pod.name}` is queued already"
        queued = self.pods[pod.uid] = QueuedPod(pod, now)
        self.to_active(queued, event, now)
        return queued

    def update(self, old: PodInfo | None, new: PodInfo, events: Iterable[ClusterEvent], now: float) -> None:
        """A pending pod changed; `events` say how. One that is not here yet is added."""
        queued = self.pods.get(new.uid)
        if queued is None:
            self.add(new, now, UPDATED)
            return
        queued.pod = new
        queued.said = None
        place = queued.place
        if place is Place.IN_FLIGHT:
            for event in events:
                self.in_flight.record(Happening(event, old, new))
        elif place is Place.UNSCHEDULABLE:
            self._update_unschedulable(queued, old, events, now)
        elif place in (Place.ACTIVE, Place.BACKOFF):
            self.rekey(queued)
        else:
            self.wake(queued, Strategy.AFTER_BACKOFF, UPDATED, "", now)

    def _update_unschedulable(
        self, queued: QueuedPod, old: PodInfo | None, events: Iterable[ClusterEvent], now: float
    ) -> None:
        self.detach(queued)
        for event in events:
            strategy, plugin = self.index_of(queued).hint(queued, event, old, queued.pod)
            if strategy is not Strategy.SKIP:
                self.requeue(queued, strategy, event.label, plugin, now)
                return
        self.to_unschedulable(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        """The pod leaves the queue: it is reserved, pending no more, or gone. None if it is not here."""
        queued = self.pods.pop(uid, None)
        if queued is not None:
            self.detach(queued)
        return queued

    def restore(self, queued: QueuedPod, now: float, event: str) -> None:
        """A pod whose decision came to nothing, through no fault of its own, takes its old turn again."""
        self.pods[queued.uid] = queued
        self.to_active(queued, event, now)

    # ---- attempts

    def pop(self, now: float) -> QueuedPod | None:
        """Take the next pod and begin its attempt; None if no pod may be tried."""
        queued = self.active_q.pop()
        if queued is None:
            queued = self.backoff_q.refusals.pop()
            if queued is None:
                return None
            self.timeline.record(queued.uid, now, "woken", "active", "PopFromBackoffQ", "")
        self.begin(queued)
        return queued

    def wake_the_next(self, now: float) -> None:
        """Rule 9, for the pods woken by themselves of which something has become since the last call."""
        while self.passed_on:
            happening, refused = self.passed_on.popleft()
            self.wake_by(happening, now, refused)

    def begin(self, queued: QueuedPod) -> None:
        """An attempt of the pod, which is in no place, begins."""
        queued.attempts += 1
        queued.place = Place.IN_FLIGHT
        self.in_flight.start(queued)

    def failed(
        self,
        queued: QueuedPod,
        now: float,
        plugins: frozenset[str] = NO_PLUGINS,
        pending: frozenset[str] = NO_PLUGINS,
        not_before: float = 0.0,
        by: Profile | None = None,
    ) -> None:
        """The attempt, or the binding that followed it, failed (AddUnschedulableIfNotPresent).

        `plugins` refused the pod, `pending` among them said Pending; without any it was an error. `not_before`
        is the earliest time at which another attempt makes sense. `by`: the policy that decided.
        """
        queued.by_candidate = by is not None and by is self.candidate
        queued.unschedulable_plugins = plugins | pending
        queued.pending_plugins = pending
        queued.refused_at, queued.refused_after = now, self.events
        if not queued.unschedulable_plugins:
            queued.error_count += 1
            queued.queued_at = now
        elif not queued.is_flushed:
            queued.unschedulable_count += 1
            queued.error_count = 0
            queued.queued_at = now
        queued.is_flushed = False
        queued.not_before = not_before
        strategy, plugin = self._hint_for_attempt(queued)
        self.pods[queued.uid] = queued
        # The room is passed on behind that: by then it is known with whom the pod waits.
        woken_by, queued.woken_by = queued.woken_by, None
        self.wake(queued, strategy, "ScheduleAttemptFailure", plugin, now)
        queued.woken_by = woken_by
        self.pass_on(queued)

    def _hint_for_attempt(self, queued: QueuedPod) -> tuple[Strategy, str]:
        """Rule 5 (determineSchedulingHintForInFlightPod)."""
        if not queued.unschedulable_plugins or queued.uid not in self.in_flight:
            return Strategy.AFTER_BACKOFF, ""
        found = (Strategy.SKIP, "")
        for event, old, new, *_ in self.in_flight.events_since_start(queued.uid):
            hint = self.index_of(queued).hint(queued, event, old, new)
            if hint[0].value > found[0].value:
                found = hint
                if found[0] is Strategy.IMMEDIATELY or not queued.pending_plugins:
                    break
        return found

    def try_again(
        self, refused: Iterable[QueuedPod], now: float, event: str, by: str = "", at_least: float = 0.0
    ) -> None:
        """What these pods wait for will not come, or who refused them (`by`) is not what it was: let those that wait
        for events be tried after their backoff, not before `at_least`."""
        for queued in refused:
            if queued.place is Place.UNSCHEDULABLE:
                queued.not_before = max(queued.not_before, at_least)
                self.wake(queued, Strategy.AFTER_BACKOFF, event, by, now)

    # ---- time

    def advance(self, now: float) -> None:
        """Time passed: backoffs end, pods that waited too long are flushed, held members are told how far their gang
        is, rules that read the time are asked again each minute."""
        while self.backoff_q.earliest < now and (queued := self.backoff_q.pop_expired(now)) is not None:
            self.to_active(queued, "BackoffComplete", now, through_gate=False)
        if now >= self._next_flush:
            self._next_flush = _next_multiple(FLUSH_PERIOD, now)
            self._flush(now)
        if now >= self._next_gang_messages:
            self._tell_held_members()
        if now >= self._next_minute:
            self._next_minute = _next_multiple(60.0, now)
            self.move(MINUTE_PASSED, None, None, now)

    def next_wakeup(self) -> float:
        """When `advance` has something to do next, in seconds; inf if time changes nothing."""
        oldest, flush = self.unschedulable_pods.peek_key(), inf
        if oldest is not None:
            limit = oldest[0] + self.profile.queue.flush_after
            flush = max(_next_multiple(FLUSH_PERIOD, limit), self._next_flush)
        minute = (
            self._next_minute if any(index.buckets and index.asks_for(MINUTE_PASSED) for index in self.indices) else inf
        )
        return min(self.backoff_q.earliest + 1.0, flush, self._next_gang_messages, minute)

    def _flush(self, now: float) -> None:
        """Rule 2 (flushUnschedulablePodsLeftover). A gated pod is looked at only if its plugin registered for any event
        whatever."""
        limit, flushed = now - self.profile.queue.flush_after, set[Hashable]()
        while (key := self.unschedulable_pods.peek_key()) is not None and key[0] < limit:
            oldest = self.unschedulable_pods.peek()
            assert oldest is not None
            if oldest.alike in flushed:
                self.unschedulable_pods.push(oldest, (limit,))  # until the next time
                continue
            flushed.add(oldest.alike)
            oldest.is_flushed = True
            self.wake(oldest, Strategy.AFTER_BACKOFF, FLUSH.label, "", now)
        for alike, strategy, plugin, _ in self.indices[0].woken_by(FLUSH, None, None):
            for queued in list(alike.pods.values()):
                if queued.place is Place.GATED and queued.refused_at < limit:
                    self.wake(queued, strategy, FLUSH.label, plugin, now)
        if flushed:
            self.in_flight.record(Happening(FLUSH, None, None))

    # ---- gangs

    def observe_member(self, pod: PodInfo, now: float) -> None:
        """A pod of this scheduler name, pending or placed, came or changed: its gang may be complete now."""
        if self.profile.gangs:
            self._hold_or_admit(self.gangs.observe(pod), now)

    def observe_other(self, pod: PodInfo, now: float) -> None:
        """A pod that is finished, or of another scheduler name, came or changed: a gang may count it."""
        if self.profile.gangs:
            is_ours = pod.scheduler_name == self.profile.scheduler_name
            self._hold_or_admit(self.gangs.observe_other(pod, is_ours), now)

    def forget_member(self, uid: str, now: float) -> None:
        """A pod finished or is gone: its gang may have become too small."""
        if self.profile.gangs:
            self._hold_or_admit(self.gangs.forget(uid), now)

    def note_place(self, pod: PodInfo) -> None:
        """The pod was given a place, or lost it."""
        if self.profile.gangs:
            self.gangs.note_place(pod)

    def gang_of(self, uid: str) -> Gang | None:
        """The gang that the pod is a member of."""
        return self.gangs.of(uid) if self.profile.gangs else None

    def _hold_or_admit(self, flipped: list[Gang], now: float) -> None:
        """Rule 7."""
        for gang in flipped:
            for queued in self.queued_members(gang):
                if gang.is_complete and queued.place is Place.HELD:
                    self.wake(queued, Strategy.AFTER_BACKOFF, "GangComplete", gang.rule, now)
                elif not gang.is_complete and queued.place in _QUEUED:
                    self.detach(queued)
                    self.keep_out(queued, Place.HELD, "", gang.message, now)
        if self.gangs.recounted:
            self._untold |= self.gangs.recounted
            self.gangs.recounted.clear()
            self._untold_since = min(self._untold_since, now)
            self._next_gang_messages = min(now + GANG_MESSAGE_AFTER, self._untold_since + GANG_MESSAGE_BY)

    def _tell_held_members(self) -> None:
        """Rule 8."""
        self._next_gang_messages = self._untold_since = inf
        for gang in self._untold.values():
            for queued in self.queued_members(gang):
                if queued.place is Place.HELD and queued.gate_message != gang.message:
                    queued.gate_message = gang.message
                    self.notices.append(GateNotice(queued, gang.message, again=True))
        self._untold.clear()

    def put_back(self, queued: QueuedPod, now: float, event: str = "GangPlaced") -> None:
        """End an attempt without a result: by default, the gang had enough without the pod, which goes on alone."""
        queued.attempts -= 1
        self.wake(queued, Strategy.IMMEDIATELY, event, "", now)

    def queued_members(self, gang: Gang) -> list[QueuedPod]:
        """The members that are in the queue, in the order in which they came."""
        return [queued for uid in gang.members if (queued := self.pods.get(uid)) is not None]


def _next_multiple(period: float, now: float) -> float:
    return (floor(now / period) + 1) * period
