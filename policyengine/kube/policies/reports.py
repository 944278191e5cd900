"""Telling the owner of a policy what became of it: the object's status, and an Event.

What holds here:
1. A status is written when it says something else than the one that is there; counts of a candidate alone are written
   every `PROGRESS` seconds at most.
2. An Event goes with a status whose verdict is news: `PolicyAccepted`, `PolicyRejected`, `PolicySuspended`. The same
   again grows the series of the first.
3. Only the leader speaks; a replica that stands by has its statuses ready for the day it leads.
4. A status that somebody else has changed is written again, `CORRECTION` seconds apart at least, so that two writers
   who disagree do not keep each other busy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from math import inf
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import Kind
from policyengine.cluster.objects import ObjectMeta, format_time
from policyengine.cluster.pod_info import PodInfo
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.policies.precedence import SourceKey, Standing
from policyengine.kube.policies.rollout_settings import Suspension, described, found
from policyengine.kube.policies.sources import ACCEPTED, REJECTED, SUSPENDED, PolicySource, Report
from policyengine.kube.watching.store import identity, number
from policyengine.kube.writing.request_queue import RequestQueue
from policyengine.scheduler.actions import RecordEvent
from policyengine.scheduler.rollout import Rollout, RolloutSettings

logger = logging.getLogger(__name__)

PROGRESS = 30.0
"""Seconds between two statuses that differ in counts alone."""
CORRECTION = 30.0
"""Seconds between two statuses that say the same."""
CONTROLLER = "policyengine"


class PolicyReports:
    """Writes statuses and Events."""

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
        self._sources: dict[SourceKey, PolicySource] = {}
        """The newest version that something was said of."""
        self._last: dict[SourceKey, Report] = {}
        """What was said last, here."""
        self._written: dict[SourceKey, tuple[int, float]] = {}
        """What the last write made: the version, and when."""
        self._said_at: dict[SourceKey, float] = {}
        """When a candidate's counts were said last."""
        self._corrections: dict[SourceKey, float] = {}
        """When a status that somebody else has changed may be written again."""
        self._queue = RequestQueue(clock, random, workers=2, limiter=client.limiter, on_problem=logger.warning)

    @property
    def correction_due(self) -> float:
        """When `tell` has a status to write that was said before; monotonic seconds."""
        return min(self._corrections.values(), default=inf)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._queue.run()

    async def flush(self, seconds: float) -> None:
        """Write what still waits."""
        await self._queue.flush(seconds)

    def doubt_all(self) -> None:
        """The server has gone back: any version may be another one than what was written made."""
        self._written = {key: (0, at) for key, (_, at) in self._written.items()}

    def forget(self, key: SourceKey) -> None:
        """The object is gone."""
        for known in (self._sources, self._last, self._written, self._said_at, self._corrections):
            known.pop(key, None)

    def tell(
        self, source: PolicySource, standing: Standing, settings: RolloutSettings | None, suspended: Suspension | None
    ) -> bool:
        """Say what became of an object, unless that is known; whether it was news."""
        key, is_accepted = source.key, standing.problem is None
        self._sources[key] = source
        self._corrections.pop(key, None)
        report = Report(
            source.version,
            ACCEPTED if is_accepted else REJECTED,
            standing.how,
            standing.policy_hash,
            tuple(profile.scheduler_name for profile in standing.profiles),
            standing.problem,
            standing.note,
        )
        if settings is not None and is_accepted:
            report = replace(report, tried=described(settings))
            if suspended is not None and suspended.is_of(standing.policy_hash, settings):
                report = replace(report, state=SUSPENDED, note=suspended.why)
        if source.says(report):
            self._last.setdefault(key, report)
            return False
        if self._last.get(key) != report:
            self._say(source, report)
            return True
        self._correct(source)
        return False

    def tell_suspended(self, source: PolicySource, rollout: Rollout) -> None:
        """Say that a candidate is tried no more, and what was found."""
        report = replace(self._last[source.key], state=SUSPENDED, note=rollout.suspended)
        self._say(source, replace(report, tried=described(rollout.settings), counts=found(rollout)))

    def tell_progress(self, source: PolicySource, rollout: Rollout, is_last: bool = False) -> None:
        """Say what was found of a candidate by now, if it is time and there is something new."""
        key, now, counts = source.key, self._clock.monotonic(), found(rollout)
        last = self._last.get(key)
        if last is None or not (rollout.compared or rollout.decided) or last.counts == counts:
            return
        if is_last or now - self._said_at.get(key, -PROGRESS) >= PROGRESS:
            self._said_at[key] = now
            self._put(key, replace(last, tried=described(rollout.settings), counts=counts))

    def _say(self, source: PolicySource, report: Report) -> None:
        """Write a verdict, log it, and record an Event about it."""
        self._put(source.key, report)
        place, problem = "", report.problem
        if problem is not None and problem.line:
            place = f" (line {problem.line}, column {problem.column})"
        note = f"{report.message}{place}" or f"policy {report.policy_hash[:12]} is loaded"
        if report.state != ACCEPTED:
            logger.warning("%s is %s: %s", source.key, report.state, note)
        if self._leads():
            # Without a version of the object, so that the same again is the same event.
            type_, reason = "Normal" if report.state == ACCEPTED else "Warning", f"Policy{report.state.capitalize()}"
            self._record(event_about(source.KIND, source.metadata, reason, "Loading", note, type_))

    def _correct(self, source: PolicySource) -> None:
        """Write again what was said, if somebody else has changed it since."""
        version, at = self._written.get(source.key, (inf, 0.0))
        if number(source.metadata.resource_version) > version:
            due = at + CORRECTION
            if due <= self._clock.monotonic():
                self._put(source.key, self._last[source.key])
            else:
                self._corrections[source.key] = due

    def _put(self, key: SourceKey, report: Report) -> None:
        self._last[key] = report
        self._written.pop(key, None)
        self._queue.write(f"policy status of {key}", self._write, key)

    async def _write(self, key: SourceKey) -> None:
        source = self._sources.get(key)
        if source is None:
            return
        patch = source.patch(self._last[key], format_time(self._clock.now()))
        try:
            answer = await self._client.call("PATCH", patch.path, patch.body, content=patch.content)
        except ApiError as error:
            if error.status != 404:
                raise
        else:
            self._written[key] = (number(identity(answer).resource_version), self._clock.monotonic())


def event_about(
    kind: Kind[Any], about: ObjectMeta | PodInfo, reason: str, action: str, note: str, type_: str = "Warning"
) -> RecordEvent:
    """An Event of ours about an object."""
    return RecordEvent(
        uid=about.uid,
        namespace=about.namespace,
        name=about.name,
        resource_version="",
        type=type_,
        reason=reason,
        action=action,
        note=note,
        scheduler_name=CONTROLLER,
        kind=kind.kind,
        api_version=kind.api_version,
    )
