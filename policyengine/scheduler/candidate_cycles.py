"""Candidates come and go; the cycles of a scheduler name that has one are run here, and compared.

    pop ──is it a canary's?── no ──> cycle by the serving policy ──> Bind ··· shadow: `ComparisonRequested` ──> compared
                      └────── yes ─> cycle by the candidate ───────> Bind ··· `ComparisonRequested` ──> compared, timed

The message comes once the actions of the cycle were handed over, and before any other: what is compared is compared on
the snapshot of the decision, and no binding waits for it. While a candidate is tried a batch of cycles is one cycle.
The pod's own room is taken out of the view for the comparison, and that of gang members placed in the same cycle. Both
policies are asked without extenders, so that only the policies can differ. Nothing is kept: no timeline entry, no
action.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.cluster.workload_objects import Namespace
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.status import Rows
from policyengine.scheduler.core import Core, failed_with
from policyengine.scheduler.cycle import run_cycle
from policyengine.scheduler.extender import leave_to
from policyengine.scheduler.messages import CandidateLoaded, CandidateRemoved, ComparisonRequested, ComparisonTimed
from policyengine.scheduler.placement import error_in, find_feasible, select_node
from policyengine.scheduler.profiles import ProfileRuntime, ServedProfile
from policyengine.scheduler.queue import policy_replacement
from policyengine.scheduler.queue.queued_pods import QueuedPod
from policyengine.scheduler.rollout import Decided, Difference, Rollout


def candidate_loaded(core: Core, message: CandidateLoaded) -> None:
    """A policy is to be tried from now on, in place of any other candidate for the scheduler name."""
    served = core.profiles.get(message.profile.scheduler_name)
    if served is None:
        return
    _end(served, "another candidate took its place")
    profile = leave_to(core.extenders, message.profile)
    served.rollout = Rollout(profile, message.settings)
    served.candidate = ServedProfile(ProfileRuntime(profile), served.queue)
    if message.suspended:
        served.rollout.suspend(message.suspended)
    _settle(core, served)


def candidate_removed(core: Core, message: CandidateRemoved) -> None:
    """No policy is tried for the scheduler name any more."""
    served = core.profiles.get(message.scheduler_name)
    if served is not None and served.rollout is not None:
        _end(served, "it was removed")
        _settle(core, served)
        served.rollout = served.candidate = None


def run(core: Core, served: ServedProfile, queued: QueuedPod) -> None:
    """One cycle of a pod whose scheduler name has a candidate, by the policy that is to decide."""
    rollout, candidate = served.rollout, served.candidate
    assert rollout is not None and candidate is not None
    pod = copy(queued.pod)  # as it is before it is given a place
    gang = served.queue.gang_of(queued.uid)
    by_candidate = rollout.takes(pod, gang, _labels(core, pod))
    before = frozenset(gang.placed) if gang is not None else frozenset()
    refusals, errors = queued.unschedulable_count, queued.error_count
    run_cycle(core, candidate if by_candidate else served, queued)
    placed = {uid for uid in gang.placed if uid not in before} if gang is not None else set()
    if _has_place(core, queued.uid):
        placed.add(queued.uid)
    is_refused = queued.unschedulable_count > refusals
    if by_candidate:
        _note(core, rollout, queued, is_refused, queued.error_count > errors)
        _settle(core, served)
    if (is_refused or queued.uid in placed) and rollout.is_tried:
        core.decided = Decided(served.scheduler_name, rollout, pod, tuple(placed), by_candidate)


def comparison_requested(core: Core, message: ComparisonRequested) -> None:
    """The actions of the last decision were handed over: compare it, if it is to be."""
    decided, core.decided = core.decided, None
    served = _still_tried(core, decided)
    if decided is None or served is None or served.candidate is None:
        return
    rollout, pod = decided.rollout, decided.pod
    if decided.by_candidate:
        rollout.note_time(pod.uid, message.seconds, core.now)
    if rollout.compares(pod, decided.by_candidate):
        core.compared = decided
        try:
            found = compare(core, pod, decided.placed, served.runtime, served.candidate.runtime)
        except CandidateFailed as failure:
            rollout.suspend(f"it failed on pod {pod.key}: {failure}")
        else:
            rollout.note_comparison(pod.uid, found, core.now)
    _settle(core, served)


def comparison_timed(core: Core, message: ComparisonTimed) -> None:
    """The comparison took so long: a shadow is held to it."""
    compared, core.compared = core.compared, None
    served = _still_tried(core, compared)
    if compared is not None and served is not None and not compared.by_candidate:
        compared.rollout.note_time(compared.pod.uid, message.seconds, core.now)
        _settle(core, served)


def _still_tried(core: Core, decided: Decided | None) -> ServedProfile | None:
    """The profile that the decision belongs to, if its candidate is the same one."""
    served = None if decided is None else core.profiles.get(decided.scheduler_name)
    return served if decided is not None and served is not None and served.rollout is decided.rollout else None


def _note(core: Core, rollout: Rollout, queued: QueuedPod, is_refused: bool, has_failed: bool) -> None:
    if has_failed:
        told = core.timeline.of(queued.uid)
        message = told[-1].details.get("message", "") if told else ""
        rollout.suspend(f"it failed on pod {queued.pod.key}: {message}")
    elif is_refused or _has_place(core, queued.uid):
        rollout.note_decision(queued.uid, is_refused, core.now)


def _end(served: ServedProfile, reason: str) -> None:
    if served.rollout is not None and served.candidate is not None:
        served.rollout.suspend(reason)
        served.candidate.is_served = False


def _settle(core: Core, served: ServedProfile) -> None:
    """Have the queue wake by the rules of those who decide: by the candidate's while it is a canary."""
    rollout = served.rollout
    if rollout is not None and served.candidate is not None:
        served.candidate.is_served = rollout.is_tried
    profile = rollout.profile if rollout is not None and rollout.decides else None
    if served.queue.candidate is profile:
        return

    def taken(pod: PodInfo) -> bool:
        gang = served.queue.gang_of(pod.uid)
        return rollout is not None and rollout.takes(pod, gang, _labels(core, pod))

    policy_replacement.replace_candidate(served.queue, profile, taken, core.now)


def _labels(core: Core, pod: PodInfo) -> Mapping[str, str]:
    namespace = core.view.objects(Namespace).get(pod.namespace)
    return namespace.metadata.labels if namespace is not None else {}


def _has_place(core: Core, uid: str) -> bool:
    pod = core.view.pods.get(uid)
    return pod is not None and bool(pod.node_name)


class CandidateFailed(Exception):
    """The candidate has no answer; one sentence says why."""


@dataclass(slots=True, eq=False)
class _Answer:
    """What one policy says."""

    runtime: ProfileRuntime
    diagnosis: Diagnosis
    node: str
    """The one that it takes; "" for none."""


def compare(
    core: Core, pod: PodInfo, placed: Iterable[str], live: ProfileRuntime, candidate: ProfileRuntime
) -> Difference:
    """Ask both policies about the pod as if the pods `placed` (UIDs) had no place yet. Raises `CandidateFailed`."""
    with core.view.hypothetically(remove=placed) as snapshot:
        ours = _ask(core, pod, live, snapshot)
        try:
            theirs = _ask(core, pod, candidate, snapshot)
        except Exception as failure:
            raise CandidateFailed(failed_with(failure).message) from failure
        error = error_in(theirs.diagnosis)
        if error is not None and error_in(ours.diagnosis) is None:
            raise CandidateFailed(error)
        return _difference(pod, snapshot, ours, theirs)


def _ask(core: Core, pod: PodInfo, runtime: ProfileRuntime, snapshot: Snapshot) -> _Answer:
    diagnosis = find_feasible(core, runtime, pod)
    found = len(diagnosis.feasible) > 0
    node = select_node(runtime.evaluator, pod, snapshot, diagnosis).node if found else ""
    return _Answer(runtime, diagnosis, node)


def _difference(pod: PodInfo, snapshot: Snapshot, ours: _Answer, theirs: _Answer) -> Difference:
    a, b = ours.diagnosis.feasible, theirs.diagnosis.feasible
    same_feasible = bool(np.array_equal(a, b))
    rules: set[str] = set()
    if not same_feasible:
        rules |= _refusers(theirs.diagnosis, np.setdiff1d(a, b)) | _refusers(ours.diagnosis, np.setdiff1d(b, a))
    if ours.node != theirs.node and ours.node and theirs.node:
        rules |= _scorers(pod, snapshot, ours, theirs)
    return Difference(
        pod.key,
        ours.node,
        theirs.node,
        (len(a), len(b)),
        same_feasible,
        tuple(sorted(rules)),
    )


def _refusers(diagnosis: Diagnosis, rows: Rows) -> set[str]:
    """The plugins that refuse these rows."""
    if not len(rows):
        return set()
    return {plugin for plugin, refused in diagnosis.by_plugin().items() if np.isin(rows, refused).any() and plugin}


def _scorers(pod: PodInfo, snapshot: Snapshot, ours: _Answer, theirs: _Answer) -> set[str]:
    """The plugins that set the two chosen nodes apart in one policy otherwise than in the other."""
    one, other = _margins(pod, snapshot, ours, theirs.node), _margins(pod, snapshot, theirs, ours.node)
    return {name for name in one.keys() | other.keys() if one.get(name, 0) != -other.get(name, 0)}


def _margins(pod: PodInfo, snapshot: Snapshot, answer: _Answer, instead: str) -> dict[str, int]:
    """By how much each plugin prefers the node taken to the other one; none where that is not feasible."""
    row_of = snapshot.nodes.row_of
    if row_of[instead] not in answer.diagnosis.feasible:
        return {}
    node_scores = answer.runtime.evaluator.score(pod, snapshot, answer.diagnosis)
    taken, left = np.searchsorted(node_scores.rows, (row_of[answer.node], row_of[instead])).tolist()
    return {name: int(scores[taken]) - int(scores[left]) for name, scores in node_scores.per_plugin.items()}
