"""The tables of the scheduler, and the few things that every handler does with them.

Invariants (tests assert them after every message):
1. A pending pod of a served scheduler name, not being deleted, is in its profile's queue, or reserved: then it waits
   at Permit, or a binding of it is under way, or the server has confirmed the binding and the watch has not yet.
2. A pod with a reservation is assumed in the view, on the node of the reservation, for as long as that lasts.
3. Whatever frees room (a deletion, a reservation given up) is announced to every queue.
4. Objects are assumed to be changed only for pods with a reservation.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from cachetools import LRUCache

from policyengine.cluster.pod_groups import NATIVE
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.view import ClusterView
from policyengine.cluster.workload_objects import NativePodGroup
from policyengine.framework.events import ASSIGNED_POD_DELETE, UNSCHEDULED_POD_UPDATE, ClusterEvent
from policyengine.framework.filtering import fit_error_message
from policyengine.framework.placed import NO_NODE
from policyengine.framework.status import Code, Status
from policyengine.scheduler import conditions_and_events
from policyengine.scheduler.actions import Action, Log, PatchObject
from policyengine.scheduler.conditions_and_events import SCHEDULER_ERROR, UNSCHEDULABLE
from policyengine.scheduler.extender import Extender, Question
from policyengine.scheduler.other_schedulers import Neighbours, UnverifiedBindings
from policyengine.scheduler.pod_timeline import Placement, PodTimelines, RecentPlacements
from policyengine.scheduler.profiles import ProfileRuntime, ServedProfile, ServedProfiles
from policyengine.scheduler.queue.queued_pods import NO_PLUGINS, Place, QueuedPod
from policyengine.scheduler.reservations import Bindings, Reservation, WaitingPods
from policyengine.scheduler.reserved_room import ReservedRoom
from policyengine.scheduler.rollout import Decided

MOST_SUCCEEDED = 20_000
"""Pods that have succeeded and are known: beyond, a policy that is loaded later does not count the oldest."""
GROUP_UNSCHEDULABLE = "pod group is unschedulable"


class Nomination(NamedTuple):
    """A nomination that was decided here and that the watch has not confirmed."""

    seen: str
    """The node that the server showed when it was decided; "" for none."""
    node: str
    """The node that was decided on; "" for none any more."""


@dataclass(slots=True)
class Eviction:
    """The victims of one pod."""

    victims: frozenset[str]
    """UIDs of those that were to be deleted."""
    awaited: set[str]
    """UIDs of those whose deletion the server has not answered for."""
    not_before: float = 0.0
    """The earliest time at which the server wants to hear of it again."""
    has_failed: bool = False
    """Whether one of them could not be deleted."""


@dataclass(slots=True)
class PodGroupWrites:
    """The PodGroups whose status is to be looked at, and what was last asked to be written of each."""

    changed: set[tuple[str, str]] = field(default_factory=set)
    """Kinds and keys."""
    asked: dict[tuple[str, str], tuple[str, Any]] = field(default_factory=dict)
    """Kind and key -> the version and the status of the last patch."""
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Key of a group of Kubernetes' own -> reason and message of what its pods were refused with last."""

    ended: dict[str, dict[str, str]] = field(default_factory=dict)
    """Key of a group of scheduler-plugins -> UID -> phase of the pods that have finished, until the group has."""

    def note(self, pod: PodInfo) -> str | None:
        """The pod was tried: the key of its group, where that is Kubernetes' own."""
        if not isinstance(pod.group, NativePodGroup):
            return None
        key = pod.group.metadata.key
        self.changed.add((NATIVE, key))
        return key

    def refuse(self, pod: PodInfo, reason: str, message: str) -> None:
        """The pod was tried, and refused; `message` is its group's."""
        key = self.note(pod)
        if key is not None:
            self.refused[key] = reason, message

    def forget(self, kind: str, key: str) -> None:
        """The group is gone."""
        self.asked.pop((kind, key), None)
        (self.refused if kind == NATIVE else self.ended).pop(key, None)


def group_message(reason: str, message: str, waits: bool) -> str:
    """What kube-scheduler says of a group whose pod was refused, or failed, with this message. `waits`: for the victims
    of its preemption (podGroupSchedulingDefaultAlgorithm, v1.36)."""
    if reason == SCHEDULER_ERROR:
        return f"failed to schedule other pod from a pod group: {message}"
    return GROUP_UNSCHEDULABLE + ", pod group is waiting for preemption to complete" * waits


def failed_with(failure: Exception) -> Status:
    """A plugin that raised, as the status it should have answered with."""
    return Status(Code.ERROR, (str(failure) or type(failure).__name__,))


class Core:
    """Everything the scheduler knows. `now` and `actions` belong to the message being handled."""

    def __init__(self) -> None:
        self.view = ClusterView()
        self.profiles = ServedProfiles(self.view)
        self.view.scheduling = self.profiles
        self.bindings = Bindings()
        self.waiting_pods = WaitingPods()
        self.pod_groups = PodGroupWrites()
        self.nominations: dict[str, Nomination] = {}
        """By pod UID. `nominatedNodeName` is written with a patch, so for a while the watch shows what it was before.
        Until it shows something else our own word counts; then the server's does (UpdateNominatedPod,
        backend/queue/nominator.go, v1.36). The view always holds the word that counts."""
        self.evictions: dict[str, Eviction] = {}
        """By preemptor's UID: until its victims are seen leaving, a pod preempts nobody else. kube-scheduler keeps such
        a pod out of its queue (DefaultPreemption's PreEnqueue); here it may be tried, and is bound where it fits."""
        self.tried_early: set[str] = set()
        """Preemptors that were tried, and fitted nowhere, while their victims were not seen leaving."""
        self.succeeded: LRUCache[str, PodInfo] = LRUCache(MOST_SUCCEEDED)
        """Pods that have succeeded, as far as they are watched, by namespace and name: gangs may count them."""
        self.confirmed: set[str] = set()
        """Pods that the server said are bound and the watch has not shown there yet."""
        self.unverified: UnverifiedBindings | None = None
        """None where bindings are not verified."""
        self.neighbours = Neighbours()
        self.extenders: tuple[Extender, ...] = ()
        self.consulted: dict[str, Question] = {}
        """Pods that extenders were asked about, by UID."""
        self.reserved_room: ReservedRoom | None = None
        """Room that is reserved for a gang, if for one."""
        self.gang_overdue_at = inf
        """When the next gang that is bound in part, and was refused, is overdue, in seconds."""
        self.decided: Decided | None = None
        """The decision just made, if its scheduler name has a candidate; it is to be compared."""
        self.compared: Decided | None = None
        """The decision just compared; how long that took is to be told."""
        self.timeline = PodTimelines()
        self.placements = RecentPlacements()
        self.is_synced = False
        self.now = 0.0
        self.actions: list[Action] = []
        self.last_number = 0
        """Of reservations, decisions and questions: none is used twice."""

    def profile_of(self, pod: PodInfo) -> ServedProfile | None:
        """The profile that the pod belongs to, served or not."""
        return self.profiles.get(pod.scheduler_name)

    def announce(self, event: ClusterEvent, old: Any, new: Any, but: str = "", undoes: int = 0) -> None:
        """Something happened that refused pods may have waited for; the pod `but` did not. `undoes`: the number of the
        reservation that this ends; who was refused before it was made was refused without it."""
        for served in self.profiles.values():
            served.queue.move(event, old, new, self.now, but, undoes)
        if self.waiting_pods:
            self.waiting_pods.note(event, old, new)

    def log(self, runtime: ProfileRuntime, point: str, pod: PodInfo, node: str = NO_NODE) -> None:
        """Say what the policy has to say of the pod at this extension point."""
        for rule in runtime.profile.logs:
            if rule.point == point and (line := rule.line(pod, node, self.view.snapshot())) is not None:
                self.actions.append(Log(pod.uid, pod.namespace, pod.name, point, node, line, runtime.policy_hash))

    def number(self, held: Reservation) -> None:
        """Number a reservation. Of several that are made together all get theirs before anybody who waits is looked at:
        who finds the room taken is told when it is given back."""
        self.last_number += 1
        held.number = self.profiles.last_reservation = self.last_number

    def took(self, held: Reservation) -> None:
        """A pod was placed, and has its number: what was noted while it waited is obsolete."""
        pod = held.queued.pod
        self.waits_no_more(pod.uid)
        held.served.queue.note_place(pod)
        held.served.queue.pass_on(held.queued)
        if pod.nominated_node_name not in ("", held.node):
            self.announce(ASSIGNED_POD_DELETE, copy(pod), None, but=pod.uid)
        self.pod_groups.note(pod)
        self.timeline.record(pod.uid, self.now, "reserved", held.node, held.runtime.policy_hash)
        queued, profile = held.queued, held.runtime.profile
        about = profile.name, profile.policy_hash, held.choice, queued.room, profile.tiers
        self.placements.note(pod.uid, Placement(self.now, queued.since, queued.attempts, *about))

    def waits_no_more(self, uid: str) -> None:
        """No room is made for the pod any more."""
        self.nominations.pop(uid, None)
        self.evictions.pop(uid, None)
        self.tried_early.discard(uid)

    def unreserve(self, held: Reservation, announce: bool = True) -> None:
        """Have the plugins give back what they reserved; the node's room is the caller's concern. `announce`: False if
        nobody was told that it was reserved."""
        pod = held.queued.pod
        for plugin in reversed(held.runtime.reserve):
            plugin.unreserve(pod, held.node)
        for made in held.made:
            self.actions += [PatchObject(pod.uid, 0, "", one) for one in made.undone()]
        for reverted in self.view.revert_objects(pod.uid) if held.plans else ():
            if announce:
                self.bindings.note(reverted.kind)
                for event in reverted.events:
                    self.announce(event, reverted.assumed, reverted.observed, but=pod.uid)

    def release(self, held: Reservation, reason: str) -> None:
        """Give up a reservation. The pod itself is the caller's to queue or to drop."""
        pod = held.queued.pod
        self.unreserve(held)
        placed = copy(pod)
        self.timeline.record(pod.uid, self.now, "released", held.node, reason)
        for event in self.view.forget(pod.uid):
            self.announce(event, placed, None, but=pod.uid, undoes=held.number)
        held.served.queue.note_place(pod)

    def withdraw(self, held: Reservation, reason: str) -> None:
        """Give up a reservation that no longer holds, its binding not posted: the pod takes its old turn again."""
        self.release(held, reason)
        held.served.queue.remove(held.queued.uid)
        held.served.queue.restore(held.queued, self.now, "DecisionWithdrawn")

    def reject(
        self,
        held: Reservation,
        status: Status,
        point: str,
        seen: int | None = None,
        also: frozenset[str] = NO_PLUGINS,
    ) -> None:
        """Give up a reservation that a plugin refused, or that failed, at the extension point `point`; the pod is
        tried again later. `seen`: as for `fail`. `also`: plugins whose events wake it besides."""
        self.release(held, status.message)
        if status.is_rejection:
            plugins = frozenset({status.plugin}) | also
            pending = plugins if status.code is Code.PENDING else NO_PLUGINS
            message = fit_error_message(1, [(reason, 1) for reason in status.reasons])
            self.fail(held.served, held.queued, UNSCHEDULABLE, message, plugins, pending, seen=seen)
        else:
            message = f'running {point} plugin "{status.plugin}": {status.message}'
            self.fail(held.served, held.queued, SCHEDULER_ERROR, message)

    def fail(
        self,
        served: ServedProfile,
        queued: QueuedPod,
        reason: str,
        message: str,
        plugins: frozenset[str] = NO_PLUGINS,
        pending: frozenset[str] = NO_PLUGINS,
        nominated: str | None = "",
        node: str = "",
        seen: int | None = None,
    ) -> None:
        """An attempt failed: the pod goes back to its queue, its owner is told.

        `nominated`: the node that is being cleared for it, "" for none, None if an earlier nomination stays. `node`:
        on which it failed. `seen`: the number of the last reservation when plugins were asked about the pod last; None
        for that of now.
        """
        queued.seen = self.last_number if seen is None else seen
        by = (plugins,) if reason == UNSCHEDULABLE else ()
        what = "refused" if reason == UNSCHEDULABLE else "failed"
        self.timeline.record(queued.uid, self.now, what, *by, served.runtime.policy_hash, message)
        served.queue.failed(queued, self.now, plugins, pending, by=served.runtime.profile)
        self.pod_groups.refuse(queued.pod, reason, group_message(reason, message, bool(nominated)))
        news = nominated if nominated is not None and self.nominate(queued.pod, nominated) else None
        self.actions += conditions_and_events.failed(
            queued, reason, message, served.runtime.policy, nominated=news, node=node
        )

    def try_again(self, uid: str, why: str, not_before: float) -> None:
        """What was to help a waiting pod has ended, or failed: it is tried after its backoff, and not before that
        time."""
        pod = self.view.pods.get(uid)
        served = None if pod is None else self.profile_of(pod)
        queued = None if served is None else served.queue.pods.get(uid)
        if served is not None and queued is not None:
            backoff = self.now + served.queue.backoff_q.duration(queued.unschedulable_count)
            served.queue.try_again([queued], self.now, why, at_least=max(not_before, backoff))

    def nominate(self, pod: PodInfo, node: str) -> bool:
        """A node is being cleared for the pod, or ("") none is any more; whether that is news."""
        before, uid = pod.nominated_node_name, pod.uid
        if before == node or pod.state is not PodState.PENDING:
            return False
        earlier = self.nominations.pop(uid, None)
        seen = before if earlier is None else earlier.seen
        if seen != node:
            self.nominations[uid] = Nomination(seen, node)
        placed = copy(pod)
        self.view.nominate(uid, node)
        if before:
            self.announce(ASSIGNED_POD_DELETE, placed, None, but=uid)
        self.announce(UNSCHEDULED_POD_UPDATE, placed, pod, but=uid)
        return True

    def tell_kept_out(self) -> None:
        """Tell the owners of pods that came to be kept outside a queue, and still are.

        Of a pod that a plugin gates nothing is told, and it keeps its nomination: the API server has set the condition
        SchedulingGated, or who makes what it waits for tells of that. By the condition Unschedulable an autoscaler
        would add nodes in vain.
        """
        for served in self.profiles.values():
            for queued, message, again, is_told in served.queue.take_notices():
                stays = queued.place in (Place.GATED, Place.HELD) and queued.gate_message == message
                if not stays or not is_told:
                    continue
                news = "" if self.nominate(queued.pod, "") else None
                self.actions += conditions_and_events.failed(
                    queued, UNSCHEDULABLE, message, served.runtime.policy, with_event=not again, nominated=news
                )
