"""Pods that wait are seen to wait: the PodScheduled condition, patched as kube-scheduler patches it.

A patch must not overtake a binding: the API server sets PodScheduled to True with the binding, and a late False
would stay on a pod that runs. So a binding first settles what is on its way for its pod.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from cachetools import LRUCache
from msgspec.structs import replace

from policyengine.clock import Clock
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.writing.events import second_time
from policyengine.kube.writing.request_queue import RequestQueue
from policyengine.scheduler.actions import PatchPodCondition

_REMEMBERED = 65_536


class ConditionWriter:
    """Writes conditions, the latest a pod, and none that says what was said before."""

    def __init__(self, client: Client, clock: Clock, queue: RequestQueue) -> None:
        self._client = client
        self._clock = clock
        self._queue = queue
        self._since: LRUCache[str, str] = LRUCache(_REMEMBERED)
        """UID -> when its condition first became False: the transition time stays while the status does."""
        self._said: LRUCache[str, PatchPodCondition] = LRUCache(_REMEMBERED)

    def write(self, condition: PatchPodCondition) -> None:
        """Write the condition soon."""
        waiting = self._queue.peek(_key(condition.uid))
        if waiting is not None:
            condition = _merged(waiting, condition)
        if self._said.get(condition.uid) == condition:
            return
        self._said[condition.uid] = condition
        self._since.setdefault(condition.uid, second_time(self._clock.now()))
        self._queue.write(_key(condition.uid), self._write, condition)

    def settle(self, uid: str) -> Awaitable[object] | None:
        """Let no patch of the pod follow, for it is about to be bound; what ends with the one on its way, if one is."""
        self._said.pop(uid, None)
        return self._queue.settle(_key(uid))

    async def _write(self, condition: PatchPodCondition) -> None:
        status: dict[str, object] = {"conditions": [self._entry(condition)]} if condition.reason else {}
        if condition.nominated_node_name is not None:
            status["nominatedNodeName"] = condition.nominated_node_name or None
        try:
            await self._client.patch_pod_status(condition.namespace, condition.name, status)
        except ApiError as error:
            if error.status != 404:
                raise

    def _entry(self, condition: PatchPodCondition) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "lastProbeTime": None,
            "lastTransitionTime": self._since.get(condition.uid) or second_time(self._clock.now()),
            "message": condition.message,
            "reason": condition.reason,
            "status": "False",
            "type": "PodScheduled",
        }
        if condition.observed_generation:
            entry["observedGeneration"] = condition.observed_generation
        return entry


def _key(uid: str) -> str:
    return f"condition of `{uid}`"


def _merged(waiting: PatchPodCondition, newer: PatchPodCondition) -> PatchPodCondition:
    """What is to be written where a patch was not sent before the next one came: what the newer leaves alone is the
    older's."""
    if newer.nominated_node_name is None:
        newer = replace(newer, nominated_node_name=waiting.nominated_node_name)
    if not newer.reason:
        return replace(waiting, nominated_node_name=newer.nominated_node_name)
    return newer
