"""What the owner of a pod is told: Events and the PodScheduled condition, worded as kube-scheduler words them.

Sources: `handleSchedulingFailure` and `finishBinding` (schedule_one.go, v1.36); the order, event before condition,
as recorded from a real kube-scheduler. An event is written for each failed attempt, the condition only when its
reason or message changes.
"""

from __future__ import annotations

from policyengine.scheduler.messages import Action, PatchPodCondition, RecordEvent
from policyengine.scheduler.queued_pod import QueuedPod

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
_NOTE_LIMIT = 1024
"""Bytes; the API server refuses longer notes (NoteLengthLimit, apis/core/validation/events.go)."""
_CUT = " ..."


def scheduled(queued: QueuedPod, node: str, scheduler_name: str) -> RecordEvent:
    """The pod is bound."""
    pod = queued.pod
    note = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
    return _event(queued, "Normal", "Scheduled", "Binding", note, scheduler_name)


def failed(queued: QueuedPod, reason: str, message: str, scheduler_name: str, with_event: bool = True) -> list[Action]:
    """The pod is not bound, and why. `reason` is UNSCHEDULABLE or SCHEDULER_ERROR."""
    message = cut(message)
    said: list[Action] = []
    if with_event:
        said.append(_event(queued, "Warning", "FailedScheduling", "Scheduling", message, scheduler_name))
    # A nomination has no meaning once an attempt has failed without preempting anybody.
    clears_nomination = bool(queued.pod.nominated_node_name)
    if clears_nomination or _is_news(queued, reason, message):
        said.append(_condition(queued, reason, message, "" if clears_nomination else None))
        queued.said = (reason, message)
    return said


def cut(text: str) -> str:
    """The text as far as an event has room for it."""
    if len(text) <= _NOTE_LIMIT // 4 or len(text.encode()) <= _NOTE_LIMIT:
        return text
    kept = text.encode()[: _NOTE_LIMIT - len(_CUT)]
    return kept.decode(errors="ignore") + _CUT


def _event(queued: QueuedPod, kind: str, reason: str, action: str, note: str, scheduler_name: str) -> RecordEvent:
    pod = queued.pod
    return RecordEvent(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        resource_version=pod.resource_version,
        type=kind,
        reason=reason,
        action=action,
        note=note,
        scheduler_name=scheduler_name,
    )


def _condition(queued: QueuedPod, reason: str, message: str, nominated: str | None) -> PatchPodCondition:
    pod = queued.pod
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
