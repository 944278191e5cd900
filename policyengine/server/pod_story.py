"""One pod's history as the scheduler that runs tells it: `GET /debug/pods/NS/NAME`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from policyengine.scheduler.pod_timeline import TimelineEntry
from policyengine.scheduler.state import SchedulerState


def pod_story(state: SchedulerState, namespace: str, name: str) -> dict[str, Any]:
    """`{pod, uid, place, position, queue, node, nominatedNode, policy, attempts, message, story}`, plain values only.

    `place` is that of `SchedulerState.place`; `position` counts the active pods of its queue that come before it, null
    where it is not active; `queue` counts the pods in each place of that queue; `policy` is `{name, hash, scheduler}`,
    null where none serves the pod; `attempts` are those that the story tells of. `story` has `{at, what, …}`, the last
    `story.LINES` lines, oldest first; `at` is RFC 3339.

    Raises:
        KeyError: no pod of this name is pending, reserved or bound, as far as the scheduler knows.
    """
    pod = state.view.find_pod(namespace, name)
    if pod is None:
        raise KeyError(f"{namespace}/{name}")
    profile = next((one for one in state.profiles if one.scheduler_name == pod.scheduler_name), None)
    lines = state.timeline(pod.uid)
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "place": state.place(pod.uid),
        "position": state.queue_position(pod.uid),
        "queue": state.pending_counts(pod.scheduler_name),
        "node": pod.node_name or None,
        "nominatedNode": pod.nominated_node_name or None,
        "policy": None
        if profile is None
        else {"name": profile.name, "hash": profile.policy_hash, "scheduler": profile.scheduler_name},
        "attempts": max((line.details["attempt"] for line in lines if line.what == "attempted"), default=0),
        "message": "" if pod.node_name else _last_message(lines),
        "story": [_line(line) for line in lines],
    }


def _last_message(lines: list[TimelineEntry]) -> str:
    """What was last said of why the pod waits."""
    return next((str(line.details["message"]) for line in reversed(lines) if line.details.get("message")), "")


def _line(line: TimelineEntry) -> dict[str, Any]:
    at = datetime.fromtimestamp(line.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"at": at, "what": line.what, **{key: _plain(value) for key, value in line.details.items()}}


def _plain(value: object) -> object:
    if isinstance(value, frozenset | set | tuple | list):
        return sorted(map(str, value)) if isinstance(value, frozenset | set) else [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
