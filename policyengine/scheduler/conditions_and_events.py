"""What the owner of a pod is told: Events and the PodScheduled condition, worded as kube-scheduler words them.

Sources: `handleSchedulingFailure` and `finishBinding` (schedule_one.go, v1.36); the order, event before condition,
as recorded from a real kube-scheduler. An event is written for each failed attempt, the condition only when its
reason or message changes.
"""

from __future__ import annotations

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.reservation import Announcement
from policyengine.scheduler.actions import Action, PatchPodCondition, RecordEvent
from policyengine.scheduler.queue.queued_pods import QueuedPod

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
NOTE_LIMIT = 1024
"""Bytes; the API server refuses longer notes (NoteLengthLimit, apis/core/validation/events.go)."""
_CUT = " ..."


def scheduled(pod: PodInfo, node: str, policy: str) -> RecordEvent:
    """The pod is bound."""
    note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
    return _event(pod, "Normal", "Scheduled", "Binding", note, policy)


def announced(pod: PodInfo, told: Announcement, policy: str, action: str = "Scheduling") -> RecordEvent:
    """What a plugin has its owner told of a pod that has its node."""
    return _event(pod, "Normal", told.reason, action, cut(told.note), policy)


def failed(
    queued: QueuedPod,
    reason: str,
    message: str,
    policy: str,
    with_event: bool = True,
    nominated: str | None = None,
    node: str = "",
) -> list[Action]:
    """The pod is not bound, and why. `reason` is UNSCHEDULABLE or SCHEDULER_ERROR; `policy` refused it; `nominated`
    the node that it is newly nominated to, "" where a nomination ended, None where nothing changed; `node` the one it
    was refused on."""
    message = cut(message)
    said: list[Action] = []
    if with_event:
        said.append(_event(queued.pod, "Warning", "FailedScheduling", "Scheduling", message, policy, node=node))
    if nominated is not None or _is_news(queued, reason, message):
        said.append(_condition(queued.pod, reason, message, nominated))
        queued.said = (reason, message)
    return said


def nomination(pod: PodInfo, node: str) -> PatchPodCondition:
    """The pod is nominated to the node; "" for none any more. Its condition stays."""
    return _condition(pod, "", "", node)


def preempted(
    victim: PodInfo, preemptor: PodInfo, node: str, policy: str, in_memory: bool = False, group: str = ""
) -> RecordEvent:
    """The victim had to go. `in_memory`: it was not bound yet, and only gave its reservation back. `group`: UID of the
    PodGroup that it made room for as a whole."""
    by = f"podgroup {group} on node cluster" if group else f"pod {preemptor.uid} on node {node}"
    note = f"Preempted by {by}"
    if in_memory:
        note += " (in kube-scheduler memory)."
    return _event(victim, "Normal", "Preempted", "Preempting", note, policy, preemptor.scheduler_name)


def lost(pod: PodInfo, node: str, reason: str, policy: str) -> RecordEvent:
    """The pod's binding did not hold beside what another scheduler bound to the node: it is evicted, if somebody would
    make it anew."""
    note = f"another scheduler bound pods to {node} at the same time, beside which this one does not fit: {reason}"
    what = "Evicted"
    if pod.owner is None:
        what, note = "NotEvicted", f"{note}; it has no controller to make it anew, so the kubelet decides"
    return _event(pod, "Warning", what, "Binding", cut(note), policy, node=node)


def cut(text: str) -> str:
    """The text as far as an event has room for it."""
    if len(text) <= NOTE_LIMIT // 4 or len(text.encode()) <= NOTE_LIMIT:
        return text
    kept = text.encode()[: NOTE_LIMIT - len(_CUT)]
    return kept.decode(errors="ignore") + _CUT


def _event(
    pod: PodInfo, kind: str, reason: str, action: str, note: str, policy: str, scheduler_name: str = "", node: str = ""
) -> RecordEvent:
    return RecordEvent(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        resource_version=pod.resource_version,
        type=kind,
        reason=reason,
        action=action,
        note=note,
        scheduler_name=scheduler_name or pod.scheduler_name,
        node=node,
        policy=policy,
    )


def _condition(pod: PodInfo, reason: str, message: str, nominated: str | None) -> PatchPodCondition:
    return PatchPodCondition(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        reason=reason,
        message=message,
        observed_generation=pod.generation,
        nominated_node_name=nominated,
    )


def _is_news(queued: QueuedPod, reason: str, message: str) -> bool:
    """Whether the pod's condition says something else than this. What was sent and is not seen yet counts."""
    if queued.said is not None:
        return queued.said != (reason, message)
    for condition in queued.pod.conditions:
        if condition.type == "PodScheduled":
            return (condition.status, condition.reason, condition.message) != ("False", reason, message)
    return True
