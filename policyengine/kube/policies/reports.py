"""Telling the owner of a policy what became of it: the annotation `policyengine.io/status`, and an Event.

What holds here:
1. A status is written when it says something else than the one that is there; counts of a candidate alone are written
   every `PROGRESS` seconds at most.
2. An Event goes with a status whose verdict is news: `PolicyAccepted`, `PolicyRejected`, `PolicySuspended`. The same
   again grows the series of the first.
3. Only the leader speaks; a replica that stands by has its statuses ready for the day it leads.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import CONFIG_MAPS
from policyengine.cluster.workload_objects import ConfigMap
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.policies.config_map import STATUS, SUSPENDED, annotated, status_of
from policyengine.kube.policies.precedence import Standing
from policyengine.kube.policies.rollout_annotations import Suspension, described, found
from policyengine.kube.writing.request_queue import RequestQueue
from policyengine.scheduler.actions import RecordEvent
from policyengine.scheduler.rollout import Rollout, RolloutSettings

logger = logging.getLogger(__name__)

PROGRESS = 30.0
"""Seconds between two statuses that differ in counts alone."""
CONTROLLER = "policyengine"
_VERDICT = ("state", "hash", "dataHash", "line", "column", "message")

Status = dict[str, Any]


class PolicyReports:
    """Writes statuses and Events. Keys are `namespace/name`."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        record: Callable[[RecordEvent], None],
        leads: Callable[[], bool],
    ) -> None:
        self._client = client
        self._clock = clock
        self._record = record
        self._leads = leads
        self._last: dict[str, Status] = {}
        """What was said last, here."""
        self._said_at: dict[str, float] = {}
        """When a candidate's counts were said last."""
        self._queue = RequestQueue(clock, random, workers=2, limiter=client.limiter, on_problem=logger.warning)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._queue.run()

    async def flush(self, seconds: float) -> None:
        """Write what still waits."""
        await self._queue.flush(seconds)

    def forget(self, key: str) -> None:
        """The ConfigMap is gone."""
        self._last.pop(key, None)
        self._said_at.pop(key, None)

    def tell(
        self, config_map: ConfigMap, standing: Standing, settings: RolloutSettings | None, suspended: Suspension | None
    ) -> bool:
        """Say what became of a ConfigMap, unless that is known; whether it was news."""
        key, there = config_map.metadata.key, annotated(config_map)
        status = status_of(config_map, standing)
        if settings is not None and standing.accepted:
            if suspended is not None and suspended.is_of(standing.policy_hash, settings):
                status |= {"state": SUSPENDED, "message": suspended.why}
            status["rollout"] = {"settings": described(settings)}
        if _says(there) == _says(status):
            self._last.setdefault(key, there)
            return False
        if key in self._last and _says(self._last[key]) == _says(status):
            return False  # it is on its way
        self._say(config_map, status)
        return True

    def tell_suspended(self, config_map: ConfigMap, rollout: Rollout) -> None:
        """Say that a candidate is tried no more, and what was found."""
        verdict = self._last.get(config_map.metadata.key) or annotated(config_map)
        self._say(config_map, verdict | {"state": SUSPENDED, "message": rollout.suspended, "rollout": _whole(rollout)})

    def tell_progress(self, config_map: ConfigMap, rollout: Rollout, is_last: bool = False) -> None:
        """Say what was found of a candidate by now, if it is time and there is something new."""
        key, now = config_map.metadata.key, self._clock.monotonic()
        last = self._last.get(key)
        if last is None or not (rollout.compared or rollout.decided) or last.get("rollout") == _whole(rollout):
            return
        if is_last or now - self._said_at.get(key, -PROGRESS) >= PROGRESS:
            self._said_at[key] = now
            self._put(config_map, last | {"rollout": _whole(rollout)})

    def _say(self, config_map: ConfigMap, status: Status) -> None:
        """Write a verdict, log it, and record an Event about it."""
        self._put(config_map, status)
        meta = config_map.metadata
        state, place = status["state"], ""
        if status["line"]:
            place = f" (line {status['line']}, column {status['column']})"
        note = f"{status['message']}{place}" or f"policy {status['hash'][:12]} is loaded"
        if state != "accepted":
            logger.warning("ConfigMap `%s` is %s: %s", meta.key, state, note)
        if self._leads():
            self._record(_event(config_map, "Normal" if state == "accepted" else "Warning", state, note))

    def _put(self, config_map: ConfigMap, status: Status) -> None:
        meta = config_map.metadata
        self._last[meta.key] = status
        path = CONFIG_MAPS.path(meta.namespace, meta.name)
        self._queue.write(f"policy status of `{meta.key}`", partial(self._write, path), status)

    async def _write(self, path: str, status: Status) -> None:
        try:
            await self._client.call("PATCH", path, {"metadata": {"annotations": {STATUS: json.dumps(status)}}})
        except ApiError as error:
            if error.status != 404:
                raise


def _whole(rollout: Rollout) -> dict[str, Any]:
    return {"settings": described(rollout.settings), **found(rollout)}


def _says(status: Mapping[str, Any]) -> tuple[object, ...]:
    """What of a status is a verdict: all but the counts."""
    rollout = status.get("rollout")
    return *(status.get(name) for name in _VERDICT), rollout.get("settings") if isinstance(rollout, dict) else None


def _event(config_map: ConfigMap, type_: str, state: str, note: str) -> RecordEvent:
    # Without a version of the ConfigMap, so that the same again is the same event.
    meta = config_map.metadata
    return RecordEvent(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        resource_version="",
        type=type_,
        reason=f"Policy{state.capitalize()}",
        action="Loading",
        note=note,
        scheduler_name=CONTROLLER,
        kind="ConfigMap",
    )
