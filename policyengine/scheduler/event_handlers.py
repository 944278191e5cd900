"""What the watches bring: nodes, pods and other objects come, change and go.

A pod is brought to its place by what it is now, not by what kind of event told of it: lists, relists, duplicates
and coalesced updates all come to the same. Duplicates and older versions change nothing (`ClusterView` knows).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from policyengine.cluster import pod_groups
from policyengine.cluster.kinds import FINISHED_PODS, GROUP_LABEL
from policyengine.cluster.object_store import ClusterObject, version_is_newer
from policyengine.cluster.pod_info import SUCCEEDED, PodInfo, PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.view import PodChange
from policyengine.framework.events import ASSIGNED_POD_DELETE, UNSCHEDULED_POD_DELETE, ClusterEvent
from policyengine.scheduler import messages
from policyengine.scheduler.binding import verification
from policyengine.scheduler.binding.bind_result import seen_unassigned, settle
from policyengine.scheduler.binding.verification import revalidate
from policyengine.scheduler.core import Core
from policyengine.scheduler.gangs import pod_group_status
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.reservations import Reservation


def node_observed(core: Core, message: messages.NodeObserved) -> None:
    """A node was added or changed."""
    name = message.node.metadata.name
    old = _node(core, name)
    for event in core.view.add_or_update_node(message.node, message.anew):
        core.announce(event, old, message.node)
    # Also without an event: a node that became worse wakes nobody, but decisions for it may not hold any more.
    revalidate(core, name)


def node_deleted(core: Core, message: messages.NodeDeleted) -> None:
    """A node is gone."""
    old = _node(core, message.name)
    for event in core.view.remove_node(message.name):
        core.announce(event, old, None)
    revalidate(core, message.name)


def object_observed(core: Core, message: messages.ObjectObserved) -> None:
    """An object of another kind was added or changed."""
    new = cast(ClusterObject, message.object)
    old = core.view.objects_of(message.kind).get(new.metadata.key)
    _object_changed(
        core, message.kind, new.metadata.key, old, new, core.view.set_object(message.kind, new, message.anew)
    )


def object_deleted(core: Core, message: messages.ObjectDeleted) -> None:
    """An object of another kind is gone."""
    key = f"{message.namespace}/{message.name}" if message.namespace else message.name
    if message.kind == FINISHED_PODS.kind:
        _no_longer_succeeded(core, key)
        return
    old = core.view.objects_of(message.kind).get(key)
    _object_changed(core, message.kind, key, old, None, core.view.remove_object(message.kind, key))


def _object_changed(
    core: Core, kind: str, key: str, old: object | None, new: object | None, events: Iterable[ClusterEvent]
) -> None:
    for change in core.view.regroup(kind, key):
        _apply(core, change)
    if kind in pod_groups.KINDS:  # what its pods are members of may be another one too
        pod_group_status.note(core, kind, key)
    for event in events:
        core.announce(event, old, new)
    core.bindings.note(kind)


def pod_observed(core: Core, message: messages.PodObserved | messages.PodRead) -> None:
    """A pod was added or changed."""
    is_anew = isinstance(message, messages.PodObserved) and message.anew
    if message.pod.status.phase == SUCCEEDED:
        _succeeded(core, message.pod)
    _unbind(core, message.pod, is_anew)
    change = core.view.add_or_update_pod(message.pod, is_anew)
    if change.new is not None and change.new is not change.old:
        _mind_nomination(core, change.old, change.new)
    if GROUP_LABEL in message.pod.metadata.labels:
        pod_group_status.note_phase(core, message.pod)
    _apply(core, change)
    decision = core.bindings.get(message.pod.metadata.uid)
    if decision is not None:
        settle(core, decision)


def _succeeded(core: Core, pod: Pod) -> None:
    """A pod has done its work: gangs that count such members go on counting it for as long as it exists."""
    known = core.succeeded.get(pod.metadata.key)
    if known is not None and known.uid == pod.metadata.uid:
        return
    if known is not None:
        _no_longer_succeeded(core, pod.metadata.key)
    info = core.succeeded[pod.metadata.key] = PodInfo(pod)
    core.view.related.tell(info)
    for served in core.profiles.values():
        if served.queue.gangs.counts_finished:
            served.queue.observe_other(info, core.now)


def _counts_as_succeeded(core: Core, served: ServedProfile, pod: PodInfo) -> bool:
    known = core.succeeded.get(pod.key)
    return served.queue.gangs.counts_finished and known is not None and known.uid == pod.uid


def _no_longer_succeeded(core: Core, key: str) -> None:
    known = core.succeeded.pop(key, None)
    for served in core.profiles.values():
        if known is not None and served.queue.gangs.counts_finished:
            served.queue.forget_member(known.uid, core.now)


def _unbind(core: Core, pod: Pod, is_anew: bool) -> None:
    """No pod loses its node, unless the server has forgotten the binding, be it that nobody noticed: then it comes as
    if it were new. What is older than a binding of ours tells nothing, unless it comes anew."""
    known = core.view.pods.get(pod.metadata.uid)
    if known is None or pod.spec.node_name:
        return
    is_newer = known.state is PodState.BOUND and version_is_newer(pod.metadata.resource_version, known.resource_version)
    if is_newer or (is_anew and (known.state is PodState.BOUND or known.uid in core.confirmed)):
        _apply(core, core.view.remove_pod(known.uid))


def pod_read(core: Core, message: messages.PodRead) -> None:
    """A pod was read, because of a binding's outcome."""
    pod_observed(core, message)
    decision = core.bindings.get(message.asked.uid)
    if decision is not None:
        seen_unassigned(core, decision, message.asked.asked_at)


def node_pods_read(core: Core, message: messages.NodePodsRead) -> None:
    """The pods of a node were read, because a pod was bound to it."""

    def take_in() -> None:
        for pod in message.pods:
            pod_observed(core, messages.PodObserved(pod))

    verification.answered(core, message.asked.node, take_in, frozenset(pod.metadata.uid for pod in message.pods))


def pod_deleted(core: Core, message: messages.PodDeleted) -> None:
    """A pod is gone."""
    namesake = None if message.uid else core.view.find_pod(message.namespace, message.name)
    _apply(core, core.view.remove_pod(message.uid if namesake is None else namesake.uid))


def _apply(core: Core, change: PodChange) -> None:
    old, new = change.old, change.new
    if old is not new:
        _take_over(core, old, new, change.events)
    if old is not None and _gives_up_nomination(old, new, change.events):
        core.announce(ASSIGNED_POD_DELETE, old, None, but=old.uid)
    but = "" if new is None else new.uid
    for event in change.events:
        core.announce(event, None if event.is_add else old, None if event.is_delete else new, but)


def _gives_up_nomination(old: PodInfo, new: PodInfo | None, events: list[ClusterEvent]) -> bool:
    """Whether a pod that room was made for waits no more, and is not on that node: those who kept off the room get it
    (deletePodFromSchedulingQueue, eventhandlers.go, v1.36; which forgets pods that somebody binds elsewhere)."""
    if not old.nominated_node_name:
        return False
    has_come = new is not None and new.uid == old.uid and new.state is PodState.BOUND
    if has_come and new is not None:
        return old.state is PodState.PENDING and new.node_name != old.nominated_node_name
    return UNSCHEDULED_POD_DELETE in events


def _take_over(core: Core, old: PodInfo | None, new: PodInfo | None, events: list[ClusterEvent]) -> None:
    for pod in (old, new):
        named = None if pod is None else pod_groups.named_by(pod)
        if named is not None:
            pod_group_status.note(core, *named)
    if old is not None and (new is None or old.uid != new.uid):
        _gone(core, old)
    if new is not None:
        before = old if old is not None and old.uid == new.uid else None
        _arrange(core, before, new, events)
    for served in core.profiles.values():
        if served.queue.gangs.any_scheduler:
            _tell_of_others(core, served, old, new)


def _tell_of_others(core: Core, served: ServedProfile, old: PodInfo | None, new: PodInfo | None) -> None:
    """Pods of other schedulers, for gangs that count them."""
    if old is not None and (new is None or old.uid != new.uid):
        is_other = old.scheduler_name != served.scheduler_name
        if is_other and not _counts_as_succeeded(core, served, old):
            served.queue.forget_member(old.uid, core.now)
    if new is not None and new.scheduler_name != served.scheduler_name:
        if new.deleting and new.state is not PodState.BOUND:
            served.queue.forget_member(new.uid, core.now)
        else:
            served.queue.observe_other(new, core.now)


def _arrange(core: Core, old: PodInfo | None, new: PodInfo, events: list[ClusterEvent]) -> None:
    """Bring a pod that exists to its place; `events` say what happened to it."""
    served = core.profile_of(new)
    if new.state is PodState.BOUND:
        _placed(core, served, old, new)
        if served is not None:
            served.queue.observe_member(new, core.now)
    elif served is None:
        return
    elif new.deleting:
        served.queue.forget_member(new.uid, core.now)
        _leaving(core, new)
    else:
        served.queue.observe_member(new, core.now)
        decision = core.bindings.get(new.uid)
        if decision is not None:
            decision.held.queued.pod = new
            decision.held.queued.said = None
        elif old is None:
            served.queue.add(new, core.now)
        elif new.uid not in core.confirmed:
            own = [event for event in events if not (event.is_add or event.is_delete)]
            served.queue.update(old, new, own, core.now)
        if new.state is PodState.ASSUMED and _may_hold_no_more(old, new):
            revalidate(core, new.node_name)


def _may_hold_no_more(old: PodInfo | None, new: PodInfo) -> bool:
    """Whether decisions for the node of a pod that has a place may be wrong by now: it has come there, or was edited or
    resized there."""
    if old is None or old.node_name != new.node_name:
        return True
    return old.shape is not new.shape or old.labels != new.labels


def _mind_nomination(core: Core, old: PodInfo | None, new: PodInfo) -> None:
    """What was decided here counts until the server has taken it; a pod that is going is nominated nowhere. A node
    that is not being cleared any more may have room for others."""
    if new.state is not PodState.PENDING:
        return
    if new.deleting:
        core.view.nominate(new.uid, "")
    elif (decided := core.nominations.get(new.uid)) is not None:
        if decided.seen == new.nominated_node_name:
            core.view.nominate(new.uid, decided.node)
        else:
            del core.nominations[new.uid]
    before = "" if old is None or old.uid != new.uid else old.nominated_node_name
    if before and before != new.nominated_node_name:
        core.announce(ASSIGNED_POD_DELETE, old, None, but=new.uid)


def _placed(core: Core, served: ServedProfile | None, old: PodInfo | None, new: PodInfo) -> None:
    """The pod is seen on a node: by our binding, by somebody else's, or after a restart."""
    core.confirmed.discard(new.uid)
    core.waits_no_more(new.uid)
    if served is not None and new.uid in served.queue.pods:
        waiting = core.waiting_pods.pop(new.uid, None)
        if waiting is not None:
            core.unreserve(waiting.held)
        served.queue.remove(new.uid)
        core.timeline.record(new.uid, core.now, "observed", new.node_name)
    if _may_hold_no_more(old, new):
        revalidate(core, new.node_name)
    if old is None or old.node_name != new.node_name:
        verification.somebody_came(core, new.node_name)
        if old is not None and core.is_synced:
            core.neighbours.note(core.view, core.profiles, new)


def _leaving(core: Core, pod: PodInfo) -> None:
    """The pod is being deleted before it was bound: no binding can succeed any more, so its room is free."""
    served, held = core.profile_of(pod), _stop(core, pod.uid)
    if held is not None:
        held.queued.pod = pod
        core.release(held, "the pod is being deleted")
    if served is not None and served.queue.remove(pod.uid) is not None:
        core.timeline.record(pod.uid, core.now, "gone", "being deleted")


def _gone(core: Core, pod: PodInfo) -> None:
    """The pod was deleted or has finished; the view has freed its room already."""
    core.confirmed.discard(pod.uid)
    served, held = core.profile_of(pod), _stop(core, pod.uid)
    if held is not None:
        core.unreserve(held)
    if served is not None:
        served.queue.remove(pod.uid)
        if not _counts_as_succeeded(core, served, pod):
            served.queue.forget_member(pod.uid, core.now)
        core.timeline.record(pod.uid, core.now, "gone", "finished" if pod.finished else "deleted")


def _stop(core: Core, uid: str) -> Reservation | None:
    """Nothing is awaited for the pod any more; its reservation, if it had one."""
    core.waits_no_more(uid)
    waiting, decision = core.waiting_pods.pop(uid, None), core.bindings.end(uid)
    return waiting.held if waiting is not None else decision.held if decision is not None else None


def _node(core: Core, name: str) -> object | None:
    row = core.view.nodes.row_of.get(name)
    return None if row is None else core.view.nodes.objects[row]
