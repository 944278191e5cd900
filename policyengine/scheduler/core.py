"""The tables of the scheduler, and the few things that every handler does with them.

Invariants (asserted by `SchedulerState.validate`):
1. A pending pod of a served scheduler name, not being deleted, is in its lane's queue, or reserved: then it waits
   at Permit, or a binding of it is under way, or the server has confirmed the binding and the watch has not yet.
2. A pod with a reservation is assumed in the view, on the node of the reservation, for as long as that lasts.
3. Whatever frees room (a deletion, a reservation given up) is announced to every queue.
4. Objects are assumed to be changed only for pods with a reservation.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from policyengine.cluster.pod_info import PodState
from policyengine.cluster.view import ClusterView
from policyengine.framework.events import ASSIGNED_POD_DELETE, ClusterEvent
from policyengine.scheduler import conditions_and_events
from policyengine.scheduler.actions import Action
from policyengine.scheduler.binding.bindings import Bindings
from policyengine.scheduler.binding.reservation import Reservation
from policyengine.scheduler.binding.waiting_pods import Permits
from policyengine.scheduler.gangs.gang_index import GangTeams
from policyengine.scheduler.gangs.pod_group_status import PodGroupStatuses
from policyengine.scheduler.pod_timeline import Story
from policyengine.scheduler.preemption.evictions import Evictions
from policyengine.scheduler.preemption.nominations import Nominations
from policyengine.scheduler.profiles import Lane, Lanes
from policyengine.scheduler.queue.deferred_work import Aftermath
from policyengine.scheduler.queue.queue_facts import LaneFacts
from policyengine.scheduler.queue.queued_pod import NO_PLUGINS, Place, QueuedPod

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.scheduler.extenders.extender import Extender, Question
    from policyengine.scheduler.gangs.reserved_room import KeptRoom
    from policyengine.scheduler.rollout.candidate_cycles import Decided


class Core:
    """Everything the scheduler knows. `now` and `actions` belong to the message being handled."""

    __slots__ = (
        "actions",
        "aftermath",
        "bindings",
        "compared",
        "confirmed",
        "consulted",
        "decided",
        "evictions",
        "extenders",
        "is_synced",
        "kept_room",
        "lanes",
        "nominations",
        "now",
        "permits",
        "pod_group_status",
        "questions",
        "story",
        "view",
    )

    def __init__(self) -> None:
        self.view = ClusterView()
        self.lanes = Lanes()
        self.aftermath = Aftermath()
        self.view.teams = GangTeams(self.lanes, self.view)
        self.view.queue_facts = LaneFacts(self.lanes, self.view)
        self.bindings = Bindings()
        self.permits = Permits()
        self.pod_group_status = PodGroupStatuses()
        self.nominations = Nominations()
        self.evictions = Evictions()
        self.confirmed: set[str] = set()
        """Pods that the server said are bound and the watch has not shown there yet."""
        self.extenders: tuple[Extender, ...] = ()
        self.consulted: dict[str, Question] = {}
        """Pods that extenders were asked about, by UID."""
        self.questions = 0
        self.kept_room: KeptRoom | None = None
        """Room that is being kept for a gang, if for one."""
        self.decided: Decided | None = None
        """The decision just made, where its scheduler name has a candidate; it is to be compared."""
        self.compared: Decided | None = None
        """The decision just compared; how long that took is to be told."""
        self.story = Story()
        self.is_synced = False
        self.now = 0.0
        self.actions: list[Action] = []

    def lane_of(self, pod: PodInfo) -> Lane | None:
        """The lane that the pod belongs to, served or not."""
        return self.lanes.get(pod.scheduler_name)

    def announce(self, event: ClusterEvent, old: Any, new: Any, but: str = "") -> None:
        """Something happened that refused pods may have waited for; the pod `but` did not."""
        for lane in self.lanes.all:
            lane.queue.move(event, old, new, self.now, but)
        if len(self.permits):
            self.permits.note(event)

    def took(self, held: Reservation) -> None:
        """A pod was placed: what was said of it while it waited does not matter any more."""
        pod = held.queued.pod
        self.nominations.forget(pod.uid)
        self.evictions.forget(pod.uid)
        held.lane.queue.gangs.note_place(pod)
        self.story.tell(pod.uid, self.now, "reserved", held.node, held.serving.policy_hash)

    def unreserve(self, held: Reservation) -> None:
        """Have the plugins give back what they reserved; the node's room is the caller's concern."""
        pod = held.queued.pod
        for plugin in reversed(held.serving.reserve):
            plugin.unreserve(pod, held.node)
        if held.plans:
            for reverted in self.view.revert_objects(pod.uid):
                self.bindings.note(reverted.kind)
                for event in reverted.events:
                    self.announce(event, reverted.assumed, reverted.observed, but=pod.uid)

    def release(self, held: Reservation, reason: str) -> None:
        """Give up a reservation. The pod itself is the caller's to queue or to drop."""
        pod = held.queued.pod
        self.unreserve(held)
        placed = copy(pod)
        self.story.tell(pod.uid, self.now, "released", held.node, reason)
        for event in self.view.forget(pod.uid):
            self.announce(event, placed, None, but=pod.uid)
        held.lane.queue.gangs.note_place(pod)

    def fail(
        self,
        lane: Lane,
        queued: QueuedPod,
        reason: str,
        message: str,
        plugins: frozenset[str] = NO_PLUGINS,
        pending: frozenset[str] = NO_PLUGINS,
        nominated: str | None = "",
        node: str = "",
    ) -> None:
        """An attempt failed: the pod goes back to its queue, its owner is told. `nominated`: the node that is being
        cleared for it, "" where none is, None where an earlier nomination stays. `node`: on which it failed."""
        what = "refused" if reason == conditions_and_events.UNSCHEDULABLE else "failed"
        by = (plugins,) if what == "refused" else ()
        self.story.tell(queued.uid, self.now, what, *by, lane.serving.policy_hash, message)
        lane.queue.failed(queued, self.now, plugins, pending, by=lane.serving.profile)
        news = nominated if nominated is not None and self.nominate(queued.pod, nominated) else None
        name = queued.pod.scheduler_name
        self.actions += conditions_and_events.failed(queued, reason, message, name, nominated=news, node=node)

    def nominate(self, pod: PodInfo, node: str) -> bool:
        """A node is being cleared for the pod, or ("") none is any more; whether that is news."""
        before = pod.nominated_node_name
        if before == node or pod.state is not PodState.PENDING:
            return False
        placed = copy(pod)
        self.nominations.decide(pod.uid, before, node)
        self.view.nominate(pod.uid, node)
        if before:
            self.announce(ASSIGNED_POD_DELETE, placed, None, but=pod.uid)
        return True

    def tell_waiting(self) -> None:
        """Tell the owners of pods that came to be kept outside a queue, and still are."""
        for lane in self.lanes:
            for queued, denial, again in lane.queue.take_notices():
                if queued.place is not denial.place or queued.gate_message != denial.message:
                    continue
                if denial.place is Place.GATED and queued.pod.shape.spec.scheduling_gates:
                    continue  # the API server has set the condition SchedulingGated
                name = queued.pod.scheduler_name
                news = "" if self.nominate(queued.pod, "") else None
                self.actions += conditions_and_events.failed(
                    queued,
                    conditions_and_events.UNSCHEDULABLE,
                    denial.message,
                    name,
                    with_event=not again,
                    nominated=news,
                )
