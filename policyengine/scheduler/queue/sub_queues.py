"""Where the pods of one queue are, and the moves between these places.

Invariant: between two calls every pod is in exactly one of gated, held, active, backoff, unschedulable and in
flight; `QueuedPod.place` says which, and only this file writes it. A move takes a pod that has been detached and
leaves it in one place. `validate` asserts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from policyengine.cluster.view import ClusterView
from policyengine.framework.events import ClusterEvent
from policyengine.framework.profile import Profile
from policyengine.scheduler.pod_timeline import Story
from policyengine.scheduler.queue.backoff import BackoffQueue
from policyengine.scheduler.queue.deferred_work import Aftermath
from policyengine.scheduler.queue.fair_share import active_pods
from policyengine.scheduler.queue.heap import Key, PodHeap
from policyengine.scheduler.queue.in_flight_pods import InFlight
from policyengine.scheduler.queue.pre_enqueue import Admission, Denial
from policyengine.scheduler.queue.queued_pod import Place, QueuedPod, Strategy
from policyengine.scheduler.queue.queueing_hints import WakeUps


class Notice(NamedTuple):
    """A pod that is kept outside the queue, and what its owner is to be told."""

    pod: QueuedPod
    denial: Denial
    again: bool
    """Whether only the wording changed since it was told."""


class Places:
    """The places of one queue. `now` is in seconds."""

    def __init__(self, profile: Profile, story: Story, view: ClusterView, aftermath: Aftermath) -> None:
        self.profile = profile
        self._view = view
        self._aftermath = aftermath
        self.story = story
        self.pods: dict[str, QueuedPod] = {}
        self.admission = Admission(profile, aftermath)
        self.active = active_pods(profile, view)
        self.backoff = BackoffQueue(profile.queue)
        self.unschedulable = PodHeap()
        """By `queued_at`: the flush takes the oldest first."""
        self.wake_ups = WakeUps(profile)
        """Unschedulable pods by all their refusers, gated ones by the plugin that gates them."""
        self.candidate: Profile | None = None
        """A policy that decides about some of the pods."""
        self.indices: tuple[WakeUps, ...] = (self.wake_ups,)
        """The index above; then that of the pods which the candidate refused, where there is one."""
        self.in_flight = InFlight()
        self.notices: list[Notice] = []

    def replace_profile(self, profile: Profile) -> None:
        """Judge, order and wake by this profile from now on. No pod may be in a place but in flight."""
        self.profile = profile
        self.admission = Admission(profile, self._aftermath)
        self.active = active_pods(profile, self._view)
        self.backoff.settings = profile.queue
        self.wake_ups.replace_profile(profile)

    def replace_rules(self, profile: Profile) -> list[QueuedPod]:
        """Judge and wake by this profile from now on, whose queue is the same: all stay in their places. The pods that
        were refused, but for those that a candidate refused."""
        filed = [
            (queued, frozenset(plugin for plugin, _ in queued.buckets if plugin)) for queued in self.wake_ups.pods()
        ]
        for queued, _ in filed:
            self.wake_ups.remove(queued)
        self.profile = profile
        self.wake_ups.replace_profile(profile)
        for queued, plugins in filed:
            self.wake_ups.add(queued, plugins)
        return [queued for queued, _ in filed if queued.place is Place.UNSCHEDULABLE]

    def replace_candidate(self, candidate: Profile | None) -> None:
        """Another policy decides about some of the pods, or none does. No pod may wait that the one before refused."""
        self.candidate = candidate
        self.indices = (self.wake_ups,) if candidate is None else (self.wake_ups, WakeUps(candidate))

    def wake_ups_of(self, queued: QueuedPod) -> WakeUps:
        """Where the pod waits for events: with the policy that refused it."""
        return self.indices[-1] if queued.by_candidate else self.wake_ups

    def order(self, queued: QueuedPod) -> Key:
        """The pod's key in the active queue. One whose key cannot be computed comes last, in order of arrival."""
        try:
            counted = (queued.attempts,) if self.profile.counts_attempts else ()
            return (False, *self.profile.queue_key(queued.pod, queued.queued_at, *counted))
        except Exception:
            return (True, queued.queued_at, queued.uid)

    def rekey(self, queued: QueuedPod) -> None:
        """An active or backing-off pod changed: give it its new turn."""
        if queued.place is Place.ACTIVE:
            self.active.push(queued, self.order(queued))
        else:
            self.backoff.push(queued, self.order(queued))

    def to_active(self, queued: QueuedPod, event: str, now: float, plugin: str = "") -> None:
        """Let the pod be tried, if Admission lets it in."""
        if self._is_admitted(queued, now):
            self.activate(queued, event, now, plugin)

    def activate(self, queued: QueuedPod, event: str, now: float, plugin: str = "") -> None:
        """Let a pod be tried that Admission has let in before."""
        self.active.push(queued, self.order(queued))
        queued.place = Place.ACTIVE
        self.story.tell(queued.uid, now, "woken" if queued.attempts else "queued", "active", event, plugin)

    def to_backoff(self, queued: QueuedPod, event: str, now: float, plugin: str = "") -> None:
        """Let the pod wait for the end of its backoff, if Admission lets it in."""
        if self._is_admitted(queued, now):
            self.backoff.push(queued, self.order(queued))
            queued.place = Place.BACKOFF
            self.story.tell(queued.uid, now, "woken", "backoff", event, plugin)

    def to_unschedulable(self, queued: QueuedPod) -> None:
        """Let the pod wait for an event that one of its refusers registered."""
        queued.place = Place.UNSCHEDULABLE
        self.unschedulable.push(queued, (queued.queued_at,))
        self.wake_ups_of(queued).add(queued, queued.unschedulable_plugins)

    def to_flight(self, queued: QueuedPod) -> None:
        """The pod's attempt begins."""
        queued.place = Place.IN_FLIGHT
        self.in_flight.start(queued)

    def wake(self, queued: QueuedPod, strategy: Strategy, event: str, plugin: str, now: float) -> None:
        """Take the pod out of its place and let it be tried again as `strategy` says."""
        self.detach(queued)
        self.requeue(queued, strategy, event, plugin, now)

    def requeue(self, queued: QueuedPod, strategy: Strategy, event: str, plugin: str, now: float) -> None:
        """The same for a pod that was taken out of its place."""
        if strategy is Strategy.SKIP:
            held = self.admission.gangs.hold_message(queued.uid)
            if held:
                self.keep_out(queued, Denial(Place.HELD, "", held), now)
            else:
                self.to_unschedulable(queued)
        elif strategy is Strategy.AFTER_BACKOFF and self.backoff.is_backing_off(queued, now):
            self.to_backoff(queued, event, now, plugin)
        else:
            self.to_active(queued, event, now, plugin)

    def move(self, event: ClusterEvent, old: Any, new: Any, now: float, but: str = "") -> None:
        """Something happened in the cluster: wake those whom it may help, but for the pod `but`."""
        for wake_ups in self.indices:
            for queued, strategy, plugin in wake_ups.woken_by(event, old, new):
                if queued.uid != but:
                    self.wake(queued, strategy, event.label, plugin, now)
        self.in_flight.record(event, old, new)

    def asks_for(self, event: ClusterEvent) -> bool:
        """Whether a pod here was refused by a plugin that registered for the event."""
        return any(wake_ups.is_of_interest(event) for wake_ups in self.indices)

    def keep_out(self, queued: QueuedPod, denial: Denial, now: float) -> None:
        """Let the pod wait outside, and have its owner told if the reason is news."""
        queued.place = denial.place
        if denial.plugin:
            queued.by_candidate = False
            self.wake_ups.add(queued, frozenset({denial.plugin}))
        if denial.message != queued.gate_message:
            queued.gate_message = denial.message
            self.notice(queued, denial)
            by = (denial.plugin,) if denial.place is Place.GATED else ()
            self.story.tell(queued.uid, now, denial.place.value, *by, denial.message)

    def notice(self, queued: QueuedPod, denial: Denial, again: bool = False) -> None:
        """Have the pod's owner told why it is kept outside."""
        self.notices.append(Notice(queued, denial, again))
        self._aftermath.is_due = True

    def detach(self, queued: QueuedPod) -> None:
        """Take the pod out of its place."""
        place = queued.place
        if place is Place.IN_FLIGHT:
            self.in_flight.done(queued.uid)
        elif place is Place.ACTIVE:
            self.active.discard(queued.uid)
        elif place is Place.BACKOFF:
            self.backoff.discard(queued.uid)
        else:
            if place is Place.UNSCHEDULABLE:
                self.unschedulable.discard(queued.uid)
            self.wake_ups_of(queued).remove(queued)
        queued.place = Place.NOWHERE

    def counts(self) -> dict[str, int]:
        """How many pods are in each place, by the place's name."""
        found = {place.value: 0 for place in Place if place is not Place.NOWHERE}
        for queued in self.pods.values():
            found[queued.place.value] += 1
        return found

    def validate(self) -> None:
        """Assert the invariant above, and that no place knows a pod which the queue does not."""
        found: dict[str, Place] = {}
        for place, queued in self._everywhere():
            assert queued.uid not in found, f"{queued!r} is also {found[queued.uid].value}"
            assert queued.place is place, f"{queued!r} lies in {place.value}"
            assert self.pods.get(queued.uid) is queued, f"{queued!r} is not of this queue"
            found[queued.uid] = place
        outside = (Place.GATED, Place.HELD)
        for queued in self.pods.values():
            assert queued.uid in found or queued.place in outside, f"{queued!r} is not where it says"
            wakes = queued.place in (Place.UNSCHEDULABLE, Place.GATED)
            assert wakes or not queued.buckets, f"{queued!r} is in the wake-up index"
        self.admission.gangs.validate()

    def _everywhere(self) -> Iterator[tuple[Place, QueuedPod]]:
        yield from ((Place.ACTIVE, queued) for queued in self.active)
        yield from ((Place.BACKOFF, queued) for queued in self.backoff)
        yield from ((Place.UNSCHEDULABLE, queued) for queued in self.unschedulable)
        yield from ((Place.IN_FLIGHT, queued) for queued in self.in_flight)

    def _is_admitted(self, queued: QueuedPod, now: float) -> bool:
        denial = self.admission.denial(queued.pod)
        if denial is None:
            queued.gate_message = ""
            return True
        self.keep_out(queued, denial, now)
        return False
