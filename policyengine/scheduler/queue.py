"""The queue of one profile: every pending pod it serves is in exactly one place here.

    add ──> gated / held ──> active <── backoff <── unschedulable
                               │ pop       ^              ^
                               v           │   refused, nothing happened meanwhile
                           in flight ──────┴──────────────┘ ──> (reserved: the pod leaves the queue)

Rules (kube-scheduler's backend/queue/scheduling_queue.go, v1.36, whose names are kept):
1. Only Admission lets a pod into active or backoff; it is asked on every way in except from backoff to active.
2. A pod that was refused waits in unschedulable until an event its refusers registered wakes it, or until it has
   waited `flush_after` seconds; the latter is looked at every 30 s.
3. A woken pod goes to backoff while its backoff lasts, else to active; Pending plugins skip the backoff.
4. A pod that failed by an error, or was refused by nobody in particular, goes to backoff at once.
5. An event that arrives during an attempt is held against the attempt's refusal.
6. An empty active queue takes from backoff before its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import floor
from typing import TYPE_CHECKING, Any

from policyengine.cluster.view import ClusterView
from policyengine.framework.events import FLUSH, MINUTE_PASSED, POLICY_REPLACED, ActionType, ClusterEvent, Resource
from policyengine.framework.profile import Profile
from policyengine.scheduler.admission import Denial
from policyengine.scheduler.gang import Gang
from policyengine.scheduler.places import Notice, Places
from policyengine.scheduler.queued_pod import NO_PLUGINS, Place, QueuedPod, Strategy
from policyengine.scheduler.story import Story
from policyengine.scheduler.succession import queue_changed, rules_changed
from policyengine.scheduler.wakeups import KEPT_ROOM

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

FLUSH_LOOK = 30.0
"""Seconds between two looks for pods that waited too long."""
GANG_RECOUNT = 5.0
"""Seconds after which the members of an incomplete gang are told how far it is; a gang of a thousand members that
arrive one by one would otherwise cost half a million condition patches."""

FORCE_ACTIVATE = ClusterEvent(Resource.WILDCARD, ActionType.ALL, "ForceActivate")
ADDED, UPDATED = "UnscheduledPodAdd", "UnscheduledPodUpdate"
_QUEUED = frozenset({Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE})


class SchedulingQueue:
    """The pending pods of one profile. Methods take `now` in seconds; it must not go back."""

    def __init__(
        self, profile: Profile, story: Story | None = None, now: float = 0.0, view: ClusterView | None = None
    ) -> None:
        """`view`: where the shares of tenants are read; without one all of them are 0."""
        self._places = Places(profile, Story() if story is None else story, ClusterView() if view is None else view)
        self._next_look = _next_look_after(now)
        self._next_minute = _next_minute_after(now)
        self._next_recount: float | None = None

    @property
    def profile(self) -> Profile:
        """The profile that orders and judges these pods."""
        return self._places.profile

    def __len__(self) -> int:
        return len(self._places.pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._places.pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._places.pods.values())

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, wherever in the queue it is."""
        return self._places.pods.get(uid)

    @property
    def has_active(self) -> bool:
        """Whether a pod is ready to be tried."""
        return len(self._places.active) > 0

    @property
    def has_early(self) -> bool:
        """Whether a pod in backoff may be tried for want of anything else."""
        return self._places.backoff.has_early

    def position(self, uid: str) -> int | None:
        """How many active pods come before this one; None when it is not active. O(n)."""
        return self._places.active.rank(uid)

    def counts(self) -> dict[str, int]:
        """How many pods are in each place, by the place's name."""
        return self._places.counts()

    def gang_of(self, uid: str) -> Gang | None:
        """The gang the pod is a member of."""
        return self._places.admission.gangs.gang_of(uid)

    def take_notices(self) -> list[Notice]:
        """The pods kept outside since the last call, and why."""
        taken = self._places.notices
        if taken:
            self._places.notices = []
        return taken

    def take_asked(self) -> list[PodInfo]:
        """The pods that came to the gate of the queue since the last call, where the profile logs that."""
        taken = self._places.admission.asked
        if taken:
            self._places.admission.asked = []
        return taken

    def validate(self) -> None:
        """Assert that every pod is in exactly one place."""
        self._places.validate()

    # ---- pods come, change and go

    def add(self, pod: PodInfo, now: float, event: str = ADDED) -> QueuedPod:
        """A pending pod appeared. `observe_member` has been told of it before."""
        assert pod.uid not in self._places.pods, f"`{pod.namespace}/{pod.name}` is queued already"
        queued = self._places.pods[pod.uid] = QueuedPod(pod, now)
        self._places.to_active(queued, event, now)
        return queued

    def update(self, old: PodInfo | None, new: PodInfo, events: Iterable[ClusterEvent], now: float) -> None:
        """A pending pod changed; `events` say how. One that is not here yet is added."""
        queued = self._places.pods.get(new.uid)
        if queued is None:
            self.add(new, now, UPDATED)
            return
        queued.pod = new
        queued.said = None
        place = queued.place
        if place is Place.IN_FLIGHT:
            for event in events:
                self._places.in_flight.record(event, old, new)
        elif place is Place.UNSCHEDULABLE:
            self._update_unschedulable(queued, old, events, now)
        elif place in (Place.ACTIVE, Place.BACKOFF):
            self._places.rekey(queued)
        else:
            self._wake(queued, Strategy.AFTER_BACKOFF, UPDATED, "", now)

    def remove(self, uid: str) -> QueuedPod | None:
        """The pod is pending no more, or gone."""
        queued = self._places.pods.pop(uid, None)
        if queued is not None:
            self._places.detach(queued)
        return queued

    def restore(self, queued: QueuedPod, now: float, event: str) -> None:
        """A pod whose decision came to nothing, through no fault of its own, takes its old turn again."""
        self._places.pods[queued.uid] = queued
        self._places.to_active(queued, event, now)

    # ---- attempts

    def pop(self, now: float) -> QueuedPod | None:
        """Take the next pod and begin its attempt; None when no pod may be tried."""
        queued = self._places.active.pop()
        if queued is None:
            queued = self._places.backoff.pop_early()
            if queued is None:
                return None
            self._places.story.tell(queued.uid, now, "woken", "active", "PopFromBackoffQ", "")
        self._begin(queued, now)
        return queued

    def _begin(self, queued: QueuedPod, now: float) -> None:
        queued.attempts += 1
        if queued.initial_attempt_at is None:
            queued.initial_attempt_at = now
        self._places.to_flight(queued)

    def done(self, uid: str) -> None:
        """The pod's attempt succeeded: it has a reservation and leaves the queue."""
        queued = self._places.pods.pop(uid, None)
        if queued is not None:
            self._places.detach(queued)

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
        queued.by_candidate = by is not None and by is self._places.candidate
        queued.unschedulable_plugins = plugins | pending
        queued.pending_plugins = pending
        if queued.unschedulable_plugins:
            queued.unschedulable_count += 1
            queued.error_count = 0
        else:
            queued.error_count += 1
        queued.queued_at = now
        queued.expiry = None
        queued.not_before = not_before
        queued.was_flushed = False
        strategy, plugin = self._verdict_on_attempt(queued)
        self._places.pods[queued.uid] = queued
        self._wake(queued, strategy, "ScheduleAttemptFailure", plugin, now)

    # ---- events

    def move(self, event: ClusterEvent, old: Any, new: Any, now: float, but: str = "") -> None:
        """Something happened in the cluster (MoveAllToActiveOrBackoffQueue). The pod `but` is left alone."""
        for wake_ups in self._places.indices:
            for queued, strategy, plugin in wake_ups.woken_by(event, old, new):
                if queued.uid != but:
                    self._wake(queued, strategy, event.label, plugin, now)
        self._places.in_flight.record(event, old, new)

    def activate(self, uids: Iterable[str], now: float) -> None:
        """Move pods to active whatever they wait for, except for gates and gangs."""
        for uid in uids:
            queued = self._places.pods.get(uid)
            if queued is None or queued.place in (Place.ACTIVE, Place.HELD):
                continue
            if queued.place is Place.IN_FLIGHT:
                self._places.in_flight.record(FORCE_ACTIVATE, None, queued.pod)
            else:
                self._wake(queued, Strategy.IMMEDIATELY, FORCE_ACTIVATE.label, "", now)

    def try_again(self, uid: str, now: float, event: str, not_before: float = 0.0) -> None:
        """What a refused pod waits for will not come: let it be tried after its backoff, not before `not_before`."""
        queued = self._places.pods.get(uid)
        if queued is not None and queued.place is Place.UNSCHEDULABLE:
            queued.not_before, queued.expiry = not_before, None
            self._wake(queued, Strategy.AFTER_BACKOFF, event, "", now)

    def asks_for(self, event: ClusterEvent) -> bool:
        """Whether a pod here was refused by a plugin that registered for the event."""
        return any(wake_ups.is_of_interest(event) for wake_ups in self._places.indices)

    # ---- time

    def advance(self, now: float) -> None:
        """Time passed: end backoffs, flush what waited too long, tell gangs how far they are."""
        while (queued := self._places.backoff.pop_expired(now)) is not None:
            self._places.activate(queued, "BackoffComplete", now)
        if now >= self._next_look:
            self._next_look = _next_look_after(now)
            self._flush(now)
        if self._next_recount is not None and now >= self._next_recount:
            self._next_recount = None
            self._tell_gangs()
        if now >= self._next_minute:
            self._next_minute = _next_minute_after(now)
            self.move(MINUTE_PASSED, None, None, now)

    def next_wakeup(self) -> float | None:
        """When `advance` has something to do next, in seconds; None when time changes nothing."""
        oldest = self._places.unschedulable.peek_key()
        flush = None
        if oldest is not None:
            flush = max(_next_look_after(oldest[0] + self.profile.queue.flush_after), self._next_look)
        minute = self._next_minute if self.asks_for(MINUTE_PASSED) else None
        times = (self._places.backoff.next_expiry(), flush, self._next_recount, minute)
        return min((time for time in times if time is not None), default=None)

    # ---- gangs

    def observe_member(self, pod: PodInfo, now: float) -> None:
        """A pod of this scheduler name, pending or placed, came or changed: its gang may be complete now."""
        gangs = self._places.admission.gangs
        if not gangs.is_empty:
            self._regroup(gangs.observe(pod), now)

    def forget_member(self, uid: str, now: float) -> None:
        """A pod finished or is gone: its gang may have become too small."""
        gangs = self._places.admission.gangs
        if not gangs.is_empty:
            self._regroup(gangs.forget(uid), now)

    def note_place(self, pod: PodInfo) -> None:
        """The pod was given a place by a decision, or lost it."""
        gangs = self._places.admission.gangs
        if not gangs.is_empty:
            gangs.note_place(pod)

    def touch_gang(self, uid: str, is_roused: bool = False) -> None:
        """Something else happened that decides about a reservation of the pod's gang, or (`is_roused`) about those of
        its members that were refused."""
        gang = self.gang_of(uid)
        if gang is not None:
            self._places.admission.gangs.touch(gang, is_roused)

    def take_touched_gangs(self) -> list[Gang]:
        """The gangs whose reservations are to be looked at since the last call."""
        touched = self._places.admission.gangs.touched
        if not touched:
            return []
        taken = list(touched.values())
        touched.clear()
        return taken

    def find_gang(self, rule: str, key: str) -> Gang | None:
        """The gang, if it has members."""
        return self._places.admission.gangs.get(rule, key)

    def gangs(self) -> list[Gang]:
        """Every gang with at least one member."""
        return self._places.admission.gangs.gangs()

    def team(self, gang: Gang, popped: QueuedPod) -> list[QueuedPod]:
        """The members to be tried together with the one just popped, it among them, in the queue's order.

        Not among them are those that wait out an error, and those that were refused for themselves: nothing has
        happened since that may cure it.
        """
        found = [popped]
        for uid in gang.members:
            queued = self._places.pods.get(uid)
            if queued is not None and (
                queued.place is Place.ACTIVE
                or (queued.place is Place.UNSCHEDULABLE and gang.rule in queued.unschedulable_plugins)
                or (queued.place is Place.BACKOFF and not queued.error_count)
            ):
                found.append(queued)
        return sorted(found, key=self._places.order)

    def join(self, queued: QueuedPod, now: float) -> bool:
        """Begin an attempt of a pod because a mate's has begun; False where its own has."""
        if queued.place is Place.IN_FLIGHT:
            return False
        self._places.detach(queued)
        self._begin(queued, now)
        return True

    def put_back(self, queued: QueuedPod, now: float, event: str = "GangPlaced") -> None:
        """End an attempt without a result: by default, the gang had enough without the pod, which goes on alone."""
        queued.attempts -= 1
        self._wake(queued, Strategy.IMMEDIATELY, event, "", now)

    def rouse(self, gang: Gang, now: float) -> None:
        """Let the members that were refused look again: the gang is not what it was."""
        for uid in list(gang.members):
            queued = self._places.pods.get(uid)
            if queued is not None and queued.place is Place.UNSCHEDULABLE:
                self._wake(queued, Strategy.AFTER_BACKOFF, "GangChanged", gang.rule, now)

    def room_given_up(self, now: float) -> None:
        """Room that was kept for a gang is anybody's again."""
        for queued in [one for wake_ups in self._places.indices for one in wake_ups.refused_by(KEPT_ROOM)]:
            if queued.place is Place.UNSCHEDULABLE:
                self._wake(queued, Strategy.AFTER_BACKOFF, "RoomGivenUp", KEPT_ROOM, now)

    # ---- the policy

    def replace_profile(self, profile: Profile, members: Iterable[PodInfo], now: float) -> None:
        """Another policy takes over: every pod is admitted and keyed anew, and those wake whose refusing rule
        changed or vanished. `members` are all pods of the scheduler name, placed ones included.
        """
        places, before = self._places, self.profile
        if not queue_changed(before, profile):
            self._replace_rules(profile, now)
            return
        waiting = [(pod, pod.place) for pod in places.pods.values() if pod.place is not Place.IN_FLIGHT]
        for queued, _ in waiting:
            places.detach(queued)
        places.replace_profile(profile)
        for pod in members:
            places.admission.gangs.observe(pod)
        for queued, place in waiting:
            queued.expiry = None
            if place is Place.UNSCHEDULABLE and (
                queued.by_candidate or not rules_changed(before, profile, queued.unschedulable_plugins)
            ):
                self._requeue(queued, Strategy.SKIP, POLICY_REPLACED.label, "", now)
            elif place is Place.ACTIVE:
                places.to_active(queued, POLICY_REPLACED.label, now)
            else:
                self._requeue(queued, Strategy.AFTER_BACKOFF, POLICY_REPLACED.label, "", now)
        places.in_flight.record(POLICY_REPLACED, None, None)

    def _replace_rules(self, profile: Profile, now: float) -> None:
        """Another policy takes over that has the same queue: pods stay where they are, but for those refused."""
        places, before = self._places, self.profile
        refused = places.replace_rules(profile)
        for queued in refused:
            if rules_changed(before, profile, queued.unschedulable_plugins):
                queued.expiry = None
                self._wake(queued, Strategy.AFTER_BACKOFF, POLICY_REPLACED.label, "", now)
        places.in_flight.record(POLICY_REPLACED, None, None)

    @property
    def candidate(self) -> Profile | None:
        """The policy that decides about some of the pods in the serving one's place."""
        return self._places.candidate

    def replace_candidate(self, candidate: Profile | None, takes: Callable[[PodInfo], bool], now: float) -> None:
        """Another candidate decides about the pods that it `takes`, or none does. Those wake that the one before had
        refused, and those that the serving policy refused by a rule which is another in the candidate."""
        places = self._places
        waiting = [pod for pod in places.pods.values() if pod.place is Place.UNSCHEDULABLE]
        refused = [pod for pod in waiting if pod.by_candidate]
        if candidate is not None:
            refused += [
                pod
                for pod in waiting
                if not pod.by_candidate
                and takes(pod.pod)
                and rules_changed(self.profile, candidate, pod.unschedulable_plugins)
            ]
        for queued in refused:
            places.detach(queued)
        places.replace_candidate(candidate)
        for queued in refused:
            queued.by_candidate, queued.expiry = False, None
            self._requeue(queued, Strategy.AFTER_BACKOFF, POLICY_REPLACED.label, "", now)
        places.in_flight.record(POLICY_REPLACED, None, None)

    # ---- what the rules above come down to

    def _wake(self, queued: QueuedPod, strategy: Strategy, event: str, plugin: str, now: float) -> None:
        self._places.detach(queued)
        self._requeue(queued, strategy, event, plugin, now)

    def _requeue(self, queued: QueuedPod, strategy: Strategy, event: str, plugin: str, now: float) -> None:
        if strategy is Strategy.SKIP:
            held = self._places.admission.gangs.hold_message(queued.uid)
            if held:
                self._places.keep_out(queued, Denial(Place.HELD, "", held), now)
            else:
                self._places.to_unschedulable(queued)
        elif strategy is Strategy.AFTER_BACKOFF and self._places.backoff.is_backing_off(queued, now):
            self._places.to_backoff(queued, event, now, plugin)
        else:
            self._places.to_active(queued, event, now, plugin)

    def _verdict_on_attempt(self, queued: QueuedPod) -> tuple[Strategy, str]:
        """Rule 5 (determineSchedulingHintForInFlightPod)."""
        if not queued.unschedulable_plugins or queued.uid not in self._places.in_flight:
            return Strategy.AFTER_BACKOFF, ""
        found = (Strategy.SKIP, "")
        for event, old, new in self._places.in_flight.events_since_start(queued.uid):
            verdict = self._places.wake_ups_of(queued).verdict(queued, event, old, new)
            if verdict[0].value > found[0].value:
                found = verdict
                if found[0] is Strategy.IMMEDIATELY or not queued.pending_plugins:
                    break
        return found

    def _update_unschedulable(
        self, queued: QueuedPod, old: PodInfo | None, events: Iterable[ClusterEvent], now: float
    ) -> None:
        self._places.detach(queued)
        for event in events:
            strategy, plugin = self._places.wake_ups_of(queued).verdict(queued, event, old, queued.pod)
            if strategy is not Strategy.SKIP:
                self._requeue(queued, strategy, event.label, plugin, now)
                return
        self._places.to_unschedulable(queued)

    def _flush(self, now: float) -> None:
        """Rule 2's time limit; a gated pod is looked at only if its plugin asked for any event whatever."""
        limit, flushed = now - self.profile.queue.flush_after, False
        unschedulable = self._places.unschedulable
        while (oldest := unschedulable.peek()) is not None and oldest.queued_at < limit:
            oldest.was_flushed = flushed = True
            self._wake(oldest, Strategy.AFTER_BACKOFF, FLUSH.label, "", now)
        for queued, strategy, plugin in self._places.wake_ups.woken_by(FLUSH, None, None):
            if queued.place is Place.GATED and queued.queued_at < limit:
                self._wake(queued, strategy, FLUSH.label, plugin, now)
        if flushed:
            self._places.in_flight.record(FLUSH, None, None)

    def _regroup(self, flipped: list[Gang], now: float) -> None:
        """Hold the queued members of gangs that became too small, let in those of gangs that are complete."""
        gangs = self._places.admission.gangs
        for gang in flipped:
            for uid in list(gang.members):
                queued = self._places.pods.get(uid)
                if queued is None:
                    continue
                if gang.is_complete and queued.place is Place.HELD:
                    self._wake(queued, Strategy.AFTER_BACKOFF, "GangComplete", gang.rule, now)
                elif not gang.is_complete and queued.place in _QUEUED:
                    self._places.detach(queued)
                    self._places.keep_out(queued, Denial(Place.HELD, "", gang.message), now)
        if gangs.recounted and self._next_recount is None:
            self._next_recount = now + GANG_RECOUNT

    def _tell_gangs(self) -> None:
        """Bring what held pods were told about their gang up to date."""
        recounted = self._places.admission.gangs.recounted
        for gang in recounted.values():
            for uid in gang.members:
                queued = self._places.pods.get(uid)
                if queued is not None and queued.place is Place.HELD and queued.gate_message != gang.message:
                    queued.gate_message = gang.message
                    denial = Denial(Place.HELD, "", gang.message)
                    self._places.notices.append(Notice(queued, denial, again=True))
        recounted.clear()


def _next_minute_after(time: float) -> float:
    return 60.0 * (time // 60.0 + 1.0)


def _next_look_after(time: float) -> float:
    return (floor(time / FLUSH_LOOK) + 1) * FLUSH_LOOK
