"""The JSON of `policyengine explain` (docs/explain.md#json says its keys): the forecast of every pod that waits, or of
one with all that its last attempt weighed; with `--alone`, what a profile says about each by itself, as if no other
waited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from policyengine.cluster.kinds import PODS
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.diagnosis.dump import DumpedObject, load_cluster, read_objects
from policyengine.diagnosis.forecast import Fate, PodForecast, forecast
from policyengine.diagnosis.suggest import suggest, suggest_played
from policyengine.framework.evaluator import Diagnosis, Evaluator
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.profile import Profile
from policyengine.framework.status import Status
from policyengine.plugins.preemption.default_preemption import DefaultPreemption
from policyengine.scheduler.state import SchedulerState
from policyengine.trials.trial_attempts import as_pending, assumed_since
from policyengine.trials.trial_cluster import uid_of

Progress = Callable[[float], None]
"""Is told which share of the work is done: 0 to 1."""
FIRST = 0.1
"""The share of the first play, where changes are played too."""


def explain(
    cluster: Mapping[str, Any],
    profile: Profile | Sequence[Profile],
    pod: str | None = None,
    suggestions: bool = False,
    now: float = 0.0,
) -> list[dict[str, Any]]:
    """`explain_alone` of a cluster as `dump` reads it."""
    return explain_alone(read_objects(cluster), profile, pod, suggestions, now)


def explain_alone(
    objects: Iterable[DumpedObject],
    profile: Profile | Sequence[Profile],
    pod: str | None = None,
    suggestions: bool = False,
    now: float = 0.0,
) -> list[dict[str, Any]]:
    """Evaluate each pending pod, alone, against the cluster as it stands; none is placed.

    Of several profiles the one that serves the pod's scheduler name evaluates it, the
    first where none does. `pod` (`namespace/name`) picks one pod; KeyError where it does not wait. `now`: the policy's,
    in seconds since the epoch; a file tells none.
    Answer: per pod `{pod, preFilter?, rejected: {node: {plugin, code, reasons}}, scores: {node: {plugin: weighted
    score}}, total: {node: score}, chosen, preemption?}`; `chosen` is None where no node fits. `preemption`, only then:
    see `explain_preemption`. With `suggestions`, an entry without a node that fits has those that help: see `suggest`.
    """
    loaded = load_cluster(objects, now)
    picked = [info for info in loaded.pending if pod is None or info.key == pod]
    if pod is not None and not picked:
        raise KeyError(pod)
    profiles = [profile] if isinstance(profile, Profile) else list(profile)
    evaluators = {one.scheduler_name: Evaluator(one) for one in profiles}
    default = evaluators[profiles[0].scheduler_name]
    view = loaded.view
    entries: list[dict[str, Any]] = []
    for one in picked:
        evaluator = evaluators.get(one.scheduler_name, default)
        entry = explain_pod(evaluator, one, view.snapshot(), view)
        if suggestions and entry["chosen"] is None and (found := suggest(evaluator, one, view)):
            entry["suggestions"] = found
        entries.append(entry)
    return entries


def explain_pod(
    evaluator: Evaluator, pod: PodInfo, snapshot: Snapshot, view: ClusterView | None = None
) -> dict[str, Any]:
    """One pod's entry. With the snapshot's view, nominated pods are minded and preemption is tried."""
    diagnosis = evaluator.filter(pod, snapshot) if view is None else filter_with_nominated(evaluator, view, pod)
    entry = {"pod": pod.key, **judgement(evaluator, pod, snapshot, diagnosis)}
    if view is not None and len(diagnosis.feasible) == 0:
        preemption = explain_preemption(evaluator, pod, diagnosis, view)
        if preemption is not None:
            entry["preemption"] = preemption
    return entry


def judgement(evaluator: Evaluator, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> dict[str, Any]:
    """`{preFilter?, rejected, scores, total, chosen}` of a diagnosis; with `weights` and `tiers` where some decide."""
    node_scores = evaluator.score(pod, snapshot, diagnosis)
    names = snapshot.nodes.names
    entry: dict[str, Any] = {}
    if diagnosis.pre_filter is not None:
        entry["preFilter"] = _status(diagnosis.pre_filter)
    entry["rejected"] = _rejected(diagnosis, snapshot)
    rows = node_scores.rows.tolist()
    shares = {plugin: scores.tolist() for plugin, scores in node_scores.per_plugin.items()}
    entry["scores"] = {
        names[row]: {plugin: scores[place] for plugin, scores in shares.items()} for place, row in enumerate(rows)
    }
    entry["total"] = {names[row]: total for row, total in zip(rows, node_scores.total.tolist(), strict=True)}
    entry["chosen"] = names[node_scores.best(pod.uid)] if rows else None
    if tiers := [share.plugin for share in node_scores.shares if share.plugin in evaluator.profile.tiers]:
        entry |= {"weights": {share.plugin: share.weight for share in node_scores.shares}, "tiers": tiers}
    return entry


def explain_preemption(
    evaluator: Evaluator, pod: PodInfo, diagnosis: Diagnosis, view: ClusterView
) -> dict[str, Any] | None:
    """`{eligible, why?, candidates: {node: {victims, pdbViolations}}, chosen}` for a pod that `diagnosis` found no
    node for. Every node is tried; victims are `namespace/name`, the most important first. None where the profile
    does not preempt.
    """
    plugin = next((one for one in evaluator.profile.post_filters if isinstance(one, DefaultPreemption)), None)
    if plugin is None:
        return None
    why = plugin.why_not_eligible(pod, diagnosis, evaluator, view)
    if why:
        return {"eligible": False, "why": why, "candidates": {}, "chosen": None}
    candidates, chosen = plugin.all_candidates(pod, diagnosis, evaluator, view)
    names = view.nodes.names
    return {
        "eligible": True,
        "candidates": {
            names[one.row]: {"victims": [victim.key for victim in one.victims], "pdbViolations": one.violations}
            for one in candidates
        },
        "chosen": None if chosen is None else names[chosen.row],
    }


def _status(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "code": status.code.wire_name, "reasons": list(status.reasons)}


def _rejected(diagnosis: Diagnosis, snapshot: Snapshot) -> dict[str, Any]:
    """{node: refusal}, by node name; empty where PreFilter refused the pod as a whole."""
    if diagnosis.pre_filter is not None:
        return {}
    feasible = set(diagnosis.feasible.tolist())
    table = snapshot.nodes
    return {
        name: _status(diagnosis.refusal(table.row_of[name]))
        for name in sorted(table.names)
        if table.row_of[name] not in feasible
    }


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
