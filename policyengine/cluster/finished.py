"""Pods that ended on a node: those of the last hour, at most a hundred a node, the newest.

A pod counts as ended when its phase says so. When that was: its last container's end, else when it was seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from policyengine.cluster.objects import OwnerReference
from policyengine.cluster.pod_info import seconds_or_none
from policyengine.cluster.pod_objects import Pod

KEPT_FOR: Final = 3600.0
"""Seconds."""
MOST: Final = 100
"""A node."""


@dataclass(frozen=True, slots=True)
class FinishedPod:
    """How a pod ended."""

    uid: str
    owner: OwnerReference | None
    failed: bool
    reason: str
    finished_at: float
    """Seconds since the epoch."""


class FinishedPods:
    """The pods that ended, by the name of their node. Nodes need not be known."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, FinishedPod]] = {}
        self._ends: list[tuple[float, str, str]] = []
        """A heap of when each ended, its node and its UID; some may be gone."""

    @property
    def oldest(self) -> float:
        """No pod that is kept ended before this, in seconds."""
        return self._ends[0][0] if self._ends else float("inf")

    def on(self, node_name: str) -> tuple[FinishedPod, ...]:
        """Those of a node, oldest first; pods that ended at the same moment by UID."""
        return tuple(sorted(self._by_node.get(node_name, {}).values(), key=_when))

    def note(self, pod: Pod, now: float) -> str | None:
        """A finished pod was seen; the name of the node that has another list for it, None where none has."""
        node_name, uid = pod.spec.node_name, pod.metadata.uid or pod.metadata.key
        ended = min(now, max(_ends(pod), default=now))  # a clock that is ahead must not keep a pod for longer
        if not node_name or ended <= now - KEPT_FOR or uid in self._by_node.get(node_name, ()):
            return None
        failed, reason = pod.status.phase == "Failed", pod.status.reason
        there = self._by_node.setdefault(node_name, {})
        there[uid] = FinishedPod(uid, pod.metadata.controller, failed, reason, ended)
        if len(there) > MOST:
            del there[min(there.values(), key=_when).uid]
        heappush(self._ends, (ended, node_name, uid))
        return node_name

    def expire(self, now: float) -> list[str]:
        """Give up what ended too long ago; the names of the nodes that have another list for it."""
        changed: dict[str, None] = {}
        while self._ends and self._ends[0][0] <= now - KEPT_FOR:
            ended, node_name, uid = heappop(self._ends)
            there = self._by_node.get(node_name, {})
            if uid in there and there[uid].finished_at == ended:
                del there[uid]
                if not there:
                    del self._by_node[node_name]
                changed[node_name] = None
        return list(changed)


def _when(pod: FinishedPod) -> tuple[float, str]:
    return pod.finished_at, pod.uid


def _ends(pod: Pod) -> Iterable[float]:
    for status in pod.status.container_statuses:
        if status.state is not None and status.state.terminated is not None:
            ended = seconds_or_none(status.state.terminated.finished_at)
            if ended is not None:
                yield ended
