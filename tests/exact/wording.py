"""What is said of a decision, as the server holds it and as our core asks for it: the same fields of both."""

from __future__ import annotations

from typing import Any

from policyengine.scheduler.actions import PatchPodCondition, RecordEvent

Json = dict[str, Any]


def name_of(pod: Json) -> str:
    """`namespace/name`."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def event(written: Json) -> Json:
    """All of an Event but its name and times and the host that reports it."""
    regarding = written["regarding"]
    about = {name: regarding.get(name) for name in ("kind", "namespace", "name", "uid", "resourceVersion")}
    return {name: written[name] for name in ("type", "reason", "action", "note", "reportingController")} | about


def our_event(asked: RecordEvent) -> Json:
    """The same of ours."""
    return {
        "type": asked.type,
        "reason": asked.reason,
        "action": asked.action,
        "note": asked.note,
        "reportingController": asked.scheduler_name,
        "kind": asked.kind,
        "namespace": asked.namespace,
        "name": asked.name,
        "uid": asked.uid,
        "resourceVersion": asked.resource_version,
    }


def said(condition: Json) -> Json:
    """All of a condition but its times."""
    return {name: value for name, value in condition.items() if name not in ("lastProbeTime", "lastTransitionTime")}


def our_condition(asked: PatchPodCondition) -> Json:
    """The same of ours."""
    return {
        "message": asked.message,
        "observedGeneration": asked.observed_generation,
        "reason": asked.reason,
        "status": "False",
        "type": "PodScheduled",
    }
