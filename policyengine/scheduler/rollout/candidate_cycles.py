"""Candidates come and go; the cycles of a scheduler name that has one are run here, and compared.

    pop ──is it a canary's?── no ──> cycle by the serving policy ──> Bind ··· shadow: `ComparisonRequested` ──> compared
                      └────── yes ─> cycle by the candidate ───────> Bind ··· `ComparisonRequested` ──> compared, timed

The message comes once the actions of the cycle were handed over, and before any other: what is compared is compared on
the snapshot of the decision, and no binding waits for it. While a candidate is tried a batch of cycles is one cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyengine.scheduler.core import Core
from policyengine.scheduler.cycle import run_cycle
from policyengine.scheduler.extenders.ignored_resources import leave_to
from policyengine.scheduler.messages import CandidateLoaded, CandidateRemoved, ComparisonRequested, ComparisonTimed
from policyengine.scheduler.profiles import Lane
from policyengine.scheduler.queue.queued_pod import QueuedPod
from policyengine.scheduler.rollout.candidate import Rollout
from policyengine.scheduler.rollout.comparison import CandidateFailed, compare

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Decided:
    """The last decision about a pod whose scheduler name has a candidate."""

    lane: Lane
    rollout: Rollout
    pod: PodInfo
    placed: tuple[str, ...]
    """UIDs of the pods that it placed."""
    by_candidate: bool


def candidate_loaded(core: Core, message: CandidateLoaded) -> None:
    """A policy is to be tried from now on, in place of any other candidate for the scheduler name."""
    lane = core.lanes.get(message.profile.scheduler_name)
    if lane is None:
        return
    if lane.rollout is not None:
        lane.rollout.suspend("another candidate took its place")
    profile = leave_to(core.extenders, message.profile)
    lane.rollout = rollout = Rollout(profile, message.settings, lane)
    if message.suspended:
        rollout.suspend(message.suspended)
    _settle(core, lane)


def candidate_removed(core: Core, message: CandidateRemoved) -> None:
    """No policy is tried for the scheduler name any more."""
    lane = core.lanes.get(message.scheduler_name)
    if lane is not None and lane.rollout is not None:
        lane.rollout.suspend("it was removed")
        _settle(core, lane)
        lane.rollout = None


def run(core: Core, lane: Lane, rollout: Rollout, queued: QueuedPod) -> None:
    """One cycle of a pod whose scheduler name has a candidate, by whichever policy is to decide."""
    pod = copy(queued.pod)  # as it is before it is given a place
    gang = lane.queue.gangs.of(queued.uid)
    by_candidate = rollout.takes(pod, gang, _labels(core, pod))
    before = frozenset(gang.placed) if gang is not None else frozenset()
    refusals, errors = queued.unschedulable_count, queued.error_count
    run_cycle(core, rollout.lane if by_candidate else lane, queued)
    placed = {uid for uid in gang.placed if uid not in before} if gang is not None else set()
    if _has_place(core, queued.uid):
        placed.add(queued.uid)
    is_refused = queued.unschedulable_count > refusals
    if by_candidate:
        _note(core, rollout, queued, is_refused, queued.error_count > errors)
        _settle(core, lane)
    if (is_refused or queued.uid in placed) and rollout.is_tried:
        core.decided = Decided(lane, rollout, pod, tuple(placed), by_candidate)


def comparison_requested(core: Core, message: ComparisonRequested) -> None:
    """What was decided last was handed over: compare it, if it is to be."""
    decided, core.decided = core.decided, None
    if decided is None or decided.lane.rollout is not decided.rollout:
        return
    rollout, pod = decided.rollout, decided.pod
    if decided.by_candidate:
        rollout.note_time(pod.uid, message.seconds, core.now)
    if rollout.compares(pod, decided.by_candidate):
        core.compared = decided
        try:
            found = compare(core, pod, decided.placed, decided.lane.serving, rollout.lane.serving)
        except CandidateFailed as failure:
            rollout.suspend(f"it failed on pod {pod.key}: {failure}")
        else:
            rollout.note_comparison(pod.uid, found, core.now)
    _settle(core, decided.lane)


def comparison_timed(core: Core, message: ComparisonTimed) -> None:
    """The comparison took so long: a shadow is held to it."""
    compared, core.compared = core.compared, None
    if compared is None or compared.lane.rollout is not compared.rollout or compared.by_candidate:
        return
    compared.rollout.note_time(compared.pod.uid, message.seconds, core.now)
    _settle(core, compared.lane)


def _note(core: Core, rollout: Rollout, queued: QueuedPod, is_refused: bool, has_failed: bool) -> None:
    if has_failed:
        told = core.story.of(queued.uid)
        message = told[-1].details.get("message", "") if told else ""
        rollout.suspend(f"it failed on pod {queued.pod.key}: {message}")
    elif is_refused or _has_place(core, queued.uid):
        rollout.note_decision(queued.uid, is_refused, core.now)


def _settle(core: Core, lane: Lane) -> None:
    """Have the queue wake by the rules of those who decide: by the candidate's while it is a canary."""
    rollout = lane.rollout
    profile = rollout.profile if rollout is not None and rollout.decides else None
    if lane.queue.candidate is profile:
        return

    def taken(pod: PodInfo) -> bool:
        gang = lane.queue.gangs.of(pod.uid)
        return rollout is not None and rollout.takes(pod, gang, _labels(core, pod))

    lane.queue.replace_candidate(profile, taken, core.now)


def _labels(core: Core, pod: PodInfo) -> Mapping[str, str]:
    namespace = core.view.namespaces.get(pod.namespace)
    return namespace.metadata.labels if namespace is not None else {}


def _has_place(core: Core, uid: str) -> bool:
    pod = core.view.pods.get(uid)
    return pod is not None and bool(pod.node_name)
