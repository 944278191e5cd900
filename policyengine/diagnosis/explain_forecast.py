"""The JSON of `policyengine explain` (docs/explain.md#json says its keys): the forecast of every pod that waits, or of
one with all that its last attempt weighed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from policyengine.cluster.kinds import PODS
from policyengine.diagnosis.dump import DumpedObject
from policyengine.diagnosis.explain import judgement
from policyengine.diagnosis.forecast import Fate, PodForecast, forecast
from policyengine.diagnosis.suggest import suggest_played
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.profile import Profile
from policyengine.scheduler.state import SchedulerState
from policyengine.trials.trial_attempts import as_pending, assumed_since
from policyengine.trials.trial_cluster import uid_of

Progress = Callable[[float], None]
"""Is told which share of the work is done: 0 to 1."""
FIRST = 0.1
"""The share of the first play, where changes are played too."""


def explain_forecast(
    objects: Sequence[DumpedObject],
    profiles: Sequence[Profile],
    now: float,
    pod: str | None = None,
    progress: Progress = lambda share: None,
) -> list[dict[str, Any]]:
    """Forecast all pods that wait; the entries of all, in the queue's order, or of the one named `namespace/name`.

    Raises:
        KeyError: that pod does not wait.
    """
    pods = [one.object for one in objects if one.kind == PODS.kind]
    asked = {uid_of(one) for one in pods if one.metadata.key == pod}
    watch = _Watch(asked, profiles, sum(not one.spec.node_name for one in pods), progress)
    found = forecast(objects, profiles, now, tried=watch)
    if pod is None:
        return [_entry(one) for one in found.pods]
    entry = {**_entry(found[pod]), **watch.details(found[pod])}
    if suggestions := suggest_played(objects, profiles, now, pod, lambda share: progress(FIRST + (1 - FIRST) * share)):
        entry["suggestions"] = suggestions
    return [entry]


class _Watch:
    """Looks on while the pods are played, and notes what the last attempt of some weighed."""

    def __init__(self, asked: Collection[str], profiles: Sequence[Profile], waiting: int, progress: Progress) -> None:
        self._asked = asked
        self._evaluators = {profile.scheduler_name: Evaluator(profile) for profile in profiles if asked}
        self._waiting = waiting
        self._progress = progress
        self._seen: set[str] = set()
        self._last: dict[str, dict[str, Any]] = {}

    def __call__(self, state: SchedulerState, uids: Sequence[str]) -> None:
        """A cycle has just tried these pods."""
        self._seen.update(uids)
        self._progress(min(1.0, len(self._seen) / self._waiting) * (FIRST if self._asked else 1))
        for uid in uids:
            pod = state.view.pods.get(uid) if uid in self._asked else None
            if pod is not None:
                evaluator = self._evaluators[pod.scheduler_name]
                with as_pending(state, pod, assumed_since(state, uids, uid)) as (pending, snapshot):
                    diagnosis = filter_with_nominated(evaluator, state.view, pending)
                    self._last[uid] = judgement(evaluator, pending, snapshot, diagnosis)

    def details(self, one: PodForecast) -> dict[str, Any]:
        """What the pod's last attempt weighed."""
        last = self._last.get(one.uid)
        if last is None:
            return {}
        del last["chosen"]
        return last


def _entry(one: PodForecast) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "pod": one.pod,
        "schedulerName": one.scheduler_name,
        "outcome": one.what.value,
        "node": one.node or None,
        "message": one.message,
        "victims": list(one.victims),
        "nominatedNode": one.nominated or None,
        "attempts": one.attempts,
    }
    if one.what is Fate.BOUND:
        entry["after"] = round(one.after, 3)
    if one.what is Fate.UNSERVED:
        entry["served"] = list(one.served)
    return entry
