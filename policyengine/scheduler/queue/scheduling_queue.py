"""The queue of one profile: every pending pod it serves is in exactly one place here.

    add ──> gated / held ──> active <── backoff <── unschedulable
                               │ pop       ^              ^
                               v           │   refused, nothing happened meanwhile
                           in flight ──────┴──────────────┘ ──> (reserved: the pod leaves the queue)

Rules (kube-scheduler's backend/queue/scheduling_queue.go, v1.36, whose names are kept):
1. Only Admission lets a pod into active or backoff; it is asked on every way in except from backoff to active.
2. A pod that was refused waits in unschedulable until an event its refusers registered wakes it, or until it has
   waited `flush_after` seconds (`queue_times`).
3. A woken pod goes to backoff while its backoff lasts, else to active; Pending plugins skip the backoff.
4. A pod that failed by an error, or was refused by nobody in particular, goes to backoff at once.
5. An event that arrives during an attempt is held against the attempt's refusal.
6. An empty active queue takes from backoff before its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from policyengine.cluster.view import ClusterView
from policyengine.framework.events import ActionType, ClusterEvent, Resource
from policyengine.framework.profile import Profile
from policyengine.scheduler.gangs.queue_gangs import QueueGangs
from policyengine.scheduler.pod_timeline import Story
from policyengine.scheduler.queue import policy_replacement
from policyengine.scheduler.queue.deferred_work import Aftermath
from policyengine.scheduler.queue.queue_times import QueueTimes
from policyengine.scheduler.queue.queued_pod import NO_PLUGINS, Place, QueuedPod, Strategy
from policyengine.scheduler.queue.queueing_hints import KEPT_ROOM
from policyengine.scheduler.queue.sub_queues import Notice, Places

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

FORCE_ACTIVATE = ClusterEvent(Resource.WILDCARD, ActionType.ALL, "ForceActivate")
ADDED, UPDATED = "UnscheduledPodAdd", "UnscheduledPodUpdate"


class SchedulingQueue:
    """The pending pods of one profile. Methods take `now` in seconds; it must not go back."""

    def __init__(
        self,
        profile: Profile,
        story: Story | None = None,
        now: float = 0.0,
        view: ClusterView | None = None,
        aftermath: Aftermath | None = None,
    ) -> None:
        """`view`: where the shares of tenants are read; without one all of them are 0."""
        self._places = Places(
            profile,
            Story() if story is None else story,
            ClusterView() if view is None else view,
            Aftermath() if aftermath is None else aftermath,
        )
        self.gangs = QueueGangs(self._places)
        self._times = QueueTimes(self._places, self.gangs, now)

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
    def active(self) -> int:
        """How many pods are ready to be tried."""
        return len(self._places.active)

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
        """A pending pod appeared. `gangs` has been told of it before."""
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
            self._places.wake(queued, Strategy.AFTER_BACKOFF, UPDATED, "", now)

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
        self._places.wake(queued, strategy, "ScheduleAttemptFailure", plugin, now)

    # ---- events

    def move(self, event: ClusterEvent, old: Any, new: Any, now: float, but: str = "") -> None:
        """Something happened in the cluster (MoveAllToActiveOrBackoffQueue). The pod `but` is left alone."""
        self._places.move(event, old, new, now, but)

    def activate(self, uids: Iterable[str], now: float) -> None:
        """Move pods to active whatever they wait for, except for gates and gangs."""
        for uid in uids:
            queued = self._places.pods.get(uid)
            if queued is None or queued.place in (Place.ACTIVE, Place.HELD):
                continue
            if queued.place is Place.IN_FLIGHT:
                self._places.in_flight.record(FORCE_ACTIVATE, None, queued.pod)
            else:
                self._places.wake(queued, Strategy.IMMEDIATELY, FORCE_ACTIVATE.label, "", now)

    def try_again(self, uid: str, now: float, event: str, not_before: float = 0.0) -> None:
        """What a refused pod waits for will not come: let it be tried after its backoff, not before `not_before`."""
        queued = self._places.pods.get(uid)
        if queued is not None and queued.place is Place.UNSCHEDULABLE:
            queued.not_before, queued.expiry = not_before, None
            self._places.wake(queued, Strategy.AFTER_BACKOFF, event, "", now)

    # ---- time

    def advance(self, now: float) -> None:
        """Time passed: end backoffs, flush what waited too long, tell gangs how far they are."""
        self._times.advance(now)

    def next_wakeup(self) -> float | None:
        """When `advance` has something to do next, in seconds; None when time changes nothing."""
        return self._times.next_due()

    # ---- gangs

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
        self._places.wake(queued, Strategy.IMMEDIATELY, event, "", now)

    def room_given_up(self, now: float) -> None:
        """Room that was kept for a gang is anybody's again."""
        for queued in [one for wake_ups in self._places.indices for one in wake_ups.refused_by(KEPT_ROOM)]:
            if queued.place is Place.UNSCHEDULABLE:
                self._places.wake(queued, Strategy.AFTER_BACKOFF, "RoomGivenUp", KEPT_ROOM, now)

    # ---- the policy

    @property
    def candidate(self) -> Profile | None:
        """The policy that decides about some of the pods in the serving one's place."""
        return self._places.candidate

    def replace_profile(self, profile: Profile, members: Iterable[PodInfo], now: float) -> None:
        """Another policy takes over. `members` are all pods of the scheduler name, placed ones included."""
        policy_replacement.replace_profile(self._places, profile, members, now)

    def replace_candidate(self, candidate: Profile | None, takes: Callable[[PodInfo], bool], now: float) -> None:
        """Another candidate decides about the pods that it `takes`, or none does."""
        policy_replacement.replace_candidate(self._places, candidate, takes, now)

    # ---- what the rules above come down to

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
                self._places.requeue(queued, strategy, event.label, plugin, now)
                return
        self._places.to_unschedulable(queued)
