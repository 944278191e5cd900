"""Room is made for a pod that fits nowhere: PostFilter, and what follows from its answer.

    no node fits ──PostFilter──> none helps          refused; its nomination ends, unless the plugin leaves it alone
                           └──> node and victims     refused, nominated; victims deleted; lesser nominations there end
                                 (extenders that preempt are asked first: `extenders.consult`)

| a victim | what happens to it |
|---|---|
| waits at Permit, or for a PreBind plugin | gives its reservation back, and is tried again after a backoff |
| is being deleted already | nothing |
| any other | condition DisruptionTarget, then DELETE with its UID, then an Event on it |

Rules:
1. Nothing here waits: victims are named in actions, and the pod is tried again when an event says that room was made.
2. While a victim is not seen leaving, the pod preempts nobody else.
3. A deletion that fails has the pod try again after its backoff; it may find another node then. So has one that
   succeeds after the pod was tried once more.

Example: p (priority 10) fits nowhere; on n1 it would fit without v (priority 0). p is refused and nominated to n1, v
gets the condition DisruptionTarget and is deleted. When v is seen leaving p is tried again and fits.

Source: framework/preemption/executor.go and schedule_one.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.nominated import yields
from policyengine.framework.post_filter import PostFilterResult, run_post_filters
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.plugins.preemption.default_preemption import DefaultPreemption
from policyengine.scheduler import conditions_and_events
from policyengine.scheduler.actions import POST_FILTERED, DeleteVictim, PatchObject
from policyengine.scheduler.binding import verification
from policyengine.scheduler.binding.bind_result import retry_after
from policyengine.scheduler.conditions_and_events import SCHEDULER_ERROR
from policyengine.scheduler.core import Core, Eviction
from policyengine.scheduler.messages import VictimDeleted, VictimNotDeleted
from policyengine.scheduler.pod_timeline import RoomMade
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.queue.queued_pods import QueuedPod
from policyengine.scheduler.reservations import READ_AGAIN, Phase, Reservation

WAITING = Status(Code.UNSCHEDULABLE, ("preemption: waiting for the preemption for this pod to be finished",))


def find_room(core: Core, served: ServedProfile, queued: QueuedPod, diagnosis: Diagnosis) -> PostFilterResult:
    """Ask the PostFilter plugins where room can be made."""
    core.log(served.runtime, "postFilter", queued.pod)
    if not served.runtime.post_filters:
        return PostFilterResult(SUCCESS, nominated_node_name="")
    if is_running(core, queued.uid):
        return PostFilterResult(WAITING)
    runtime = served.runtime
    return run_post_filters(runtime.post_filters, queued.pod, diagnosis, runtime.evaluator, core.view)


def refuse(core: Core, served: ServedProfile, queued: QueuedPod, diagnosis: Diagnosis, found: PostFilterResult) -> None:
    """No node fits: tell the owner, and make the room that was found."""
    if served.runtime.post_filters:
        core.timeline.mark(queued.uid, core.now, "post-filtered", bool(found.nominated_node_name))
    message = diagnosis.message(found.status.message)
    nominated = found.nominated_node_name
    plugins, pending = diagnosis.plugins, diagnosis.pending_plugins
    core.fail(served, queued, conditions_and_events.UNSCHEDULABLE, message, plugins, pending, nominated=nominated)
    core.actions += [PatchObject(queued.uid, POST_FILTERED, found.status.plugin, patch) for patch in found.patches]
    if nominated:
        clear(core, served, [(queued, nominated)], found.victims, found.why)


def nominate(core: Core, pod: PodInfo, node: str) -> None:
    """The node is being cleared for the pod; ("") for another one, so that it is nominated no more."""
    if core.nominate(pod, node):
        core.actions.append(conditions_and_events.nomination(pod, node))


def clear(
    core: Core,
    served: ServedProfile,
    places: Sequence[tuple[QueuedPod, str]],
    victims: tuple[PodInfo, ...],
    why: str = "",
    group: str = "",
) -> None:
    """Make room for pods on the nodes that they are nominated to: lesser pods do not come there any more, the victims
    go, on behalf of the first. `why`: as `PostFilterResult`. `group`: the UID of the PodGroup that they are of, where
    it preempts as a whole."""
    first, node = places[0]
    first.room = RoomMade(node, tuple([victim.key for victim in victims]), why)
    core.timeline.record(first.uid, core.now, "preempting", node, ", ".join(first.room.victims), why)
    members = {queued.uid for queued, _ in places}
    for queued, its_node in places:
        _end_lesser_nominations(core, served, queued.pod, its_node, members)
    _evict(core, served.runtime.policy, first.pod, node, victims, group)


def is_running(core: Core, preemptor: str) -> bool:
    """Whether one of the pod's victims is not seen leaving yet; the pod is tried again when the last of them is."""
    eviction = core.evictions.get(preemptor)
    if eviction is None:
        return False
    pods = core.view.pods
    if eviction.awaited or any(uid in pods and not pods[uid].deleting for uid in eviction.victims):
        core.tried_early.add(preemptor)
        return True
    del core.evictions[preemptor]
    return False


def try_again_now_over(core: Core) -> None:
    """The pods that were tried too early, and whose victims are seen leaving by now, are tried again: what moves them
    may have come before, and their nomination may have to end (kube-scheduler keeps them back until then)."""
    for preemptor in sorted(core.tried_early):
        if not is_running(core, preemptor):
            core.tried_early.discard(preemptor)
            core.try_again(preemptor, "VictimsLeft", core.now)


def is_room_coming(core: Core, served: ServedProfile, pod: PodInfo) -> bool:
    """Whether a victim of the pod is not seen leaving yet, or seen leaving and not gone."""
    if is_running(core, pod.uid):
        return True
    plugins = (plugin for plugin in served.runtime.post_filters if isinstance(plugin, DefaultPreemption))
    return any(plugin.awaits_victims(pod, served.runtime.profile, core.view) for plugin in plugins)


def victim_deleted(core: Core, message: VictimDeleted) -> None:
    """A victim was deleted, or was gone before."""
    asked = message.asked
    if message.was_there:
        core.actions.append(asked.event)
    if asked.preemptor:
        _answered(core, asked, None)
    else:
        verification.eviction_answered(core, asked, None if message.was_there else 0.0)


def victim_not_deleted(core: Core, message: VictimNotDeleted) -> None:
    """A victim was not deleted, or nobody knows: the UID keeps a late request from doing harm."""
    asked = message.asked
    if not asked.preemptor:
        verification.eviction_answered(core, asked, max(READ_AGAIN, retry_after(asked.uid, message.retry_after)))
        return
    core.timeline.record(asked.preemptor, core.now, "not preempted", f"{asked.namespace}/{asked.name}", message.message)
    _answered(core, asked, retry_after(asked.preemptor, message.retry_after))


def _answered(core: Core, asked: DeleteVictim, wait: float | None) -> None:
    """A deletion was answered, or failed (`wait`: seconds that the server asks for). Once all are answered and one has
    failed the eviction is over, and the preemptor is tried again."""
    eviction = core.evictions.get(asked.preemptor)
    if eviction is None:
        return
    eviction.awaited.discard(asked.uid)
    if wait is not None:
        eviction.has_failed = True
        eviction.not_before = max(eviction.not_before, core.now + wait if wait else 0.0)
    if eviction.has_failed and not eviction.awaited:
        del core.evictions[asked.preemptor]
        core.try_again(asked.preemptor, "PreemptionFailed", eviction.not_before)


def _end_lesser_nominations(core: Core, served: ServedProfile, pod: PodInfo, node: str, but: Collection[str]) -> None:
    """Pods that were to come to the node, and that this one does not yield to, may not fit there any more. `but`: UIDs
    of those that do."""
    profile = served.runtime.profile
    for other in list(core.view.nominated_on(node).values()):
        if other.uid not in but and not yields(profile, core.view, pod, other):
            nominate(core, other, "")


def _cancelled(core: Core, uid: str) -> tuple[Reservation | None, str]:
    """The reservation of a victim whose binding is not posted, which is waited for no more, and what its owner is told;
    None for any other."""
    waiting = core.waiting_pods.pop(uid, None)
    if waiting is not None:
        return waiting.held, "waiting on permit for pod: preempted"
    decision = core.bindings.get(uid)
    if decision is not None and decision.phase is Phase.PREPARING:
        core.bindings.end(uid)
        return decision.held, "preempted by DefaultPreemption"
    return None, ""


def _evict(core: Core, policy: str, pod: PodInfo, node: str, victims: tuple[PodInfo, ...], group: str = "") -> None:
    by_request: list[PodInfo] = []
    for victim in victims:
        held, message = _cancelled(core, victim.uid)
        if held is not None:
            core.actions.append(conditions_and_events.preempted(victim, pod, node, policy, True, group))
            core.release(held, "preempted")
            core.fail(held.served, held.queued, SCHEDULER_ERROR, message)
        elif not victim.deleting:
            by_request.append(victim)
            core.timeline.record(victim.uid, core.now, "preempted", pod.key, node)
    if by_request:
        uids = frozenset(victim.uid for victim in by_request)
        core.evictions[pod.uid] = Eviction(uids, set(uids))
    giving_way = core.profiles.giving_way(pod)
    for victim in by_request:
        whom = "a higher priority podgroup" if group else "a higher priority pod"
        if victim.uid in giving_way:
            whom = "a gang that its own gang, bound in part, blocks"
        core.actions.append(
            DeleteVictim(
                uid=victim.uid,
                namespace=victim.namespace,
                name=victim.name,
                preemptor=pod.uid,
                message=f"{pod.scheduler_name}: preempting to accommodate {whom}",
                observed_generation=victim.generation,
                event=conditions_and_events.preempted(victim, pod, node, policy, group=group),
            )
        )
