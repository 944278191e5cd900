"""What two policies make of one pod, on the snapshot on which one of them has decided.

The pod's own room is taken out of the view meanwhile, and that of gang members placed in the same cycle. Both policies
are asked afresh, without extenders, so that only the policies can differ. Nothing is kept: no timeline entry, no
action, no run of identical pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from policyengine.framework.filtering import Diagnosis
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.status import Rows
from policyengine.scheduler.core import Core
from policyengine.scheduler.placement import error_in
from policyengine.scheduler.profiles import ProfileRuntime
from policyengine.scheduler.rollout.candidate import Difference

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import Snapshot


class CandidateFailed(Exception):
    """The candidate has no answer; one sentence says why."""


@dataclass(slots=True, eq=False)
class _Answer:
    """What one policy says."""

    runtime: ProfileRuntime
    diagnosis: Diagnosis
    row: int | None
    """The node that it takes."""


def compare(
    core: Core, pod: PodInfo, placed: Iterable[str], live: ProfileRuntime, candidate: ProfileRuntime
) -> Difference:
    """Ask both policies about the pod as if the pods `placed` (UIDs) had no place yet. Raises `CandidateFailed`."""
    with core.view.hypothetically(remove=placed) as snapshot:
        ours = _ask(core, pod, live, snapshot)
        try:
            theirs = _ask(core, pod, candidate, snapshot)
        except Exception as failure:
            raise CandidateFailed(str(failure) or type(failure).__name__) from failure
        error = error_in(theirs.diagnosis)
        if error is not None and error_in(ours.diagnosis) is None:
            raise CandidateFailed(error)
        return _difference(pod, snapshot, ours, theirs)


def _ask(core: Core, pod: PodInfo, runtime: ProfileRuntime, snapshot: Snapshot) -> _Answer:
    evaluator = runtime.evaluator
    diagnosis = filter_with_nominated(evaluator, core.view, pod)
    if core.reserved_room is not None:
        diagnosis = core.reserved_room.refuse(core.view, core.now, evaluator, pod, diagnosis)
    feasible = diagnosis.feasible
    if len(feasible) <= 1:
        return _Answer(runtime, diagnosis, int(feasible[0]) if len(feasible) else None)
    nominated = snapshot.nodes.row_of.get(pod.nominated_node_name) if pod.nominated_node_name else None
    if nominated is not None and diagnosis.refusal(nominated).is_success:
        return _Answer(runtime, diagnosis, nominated)
    return _Answer(runtime, diagnosis, evaluator.score(pod, snapshot, diagnosis).best(pod.uid))


def _difference(pod: PodInfo, snapshot: Snapshot, ours: _Answer, theirs: _Answer) -> Difference:
    a, b = ours.diagnosis.feasible, theirs.diagnosis.feasible
    same_feasible = bool(np.array_equal(a, b))
    rules: set[str] = set()
    if not same_feasible:
        rules |= _refusers(theirs.diagnosis, np.setdiff1d(a, b)) | _refusers(ours.diagnosis, np.setdiff1d(b, a))
    if ours.row != theirs.row and ours.row is not None and theirs.row is not None:
        rules |= _scorers(pod, snapshot, ours, theirs)
    return Difference(
        pod.key,
        _name(snapshot, ours.row),
        _name(snapshot, theirs.row),
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
    one, other = _margins(pod, snapshot, ours, theirs.row), _margins(pod, snapshot, theirs, ours.row)
    return {name for name in one.keys() | other.keys() if one.get(name, 0) != -other.get(name, 0)}


def _margins(pod: PodInfo, snapshot: Snapshot, answer: _Answer, instead: int | None) -> dict[str, int]:
    """By how much each plugin prefers the node taken to the other one; none where that is not feasible."""
    rows = answer.diagnosis.feasible
    if answer.row is None or instead is None or instead not in rows:
        return {}
    node_scores = answer.runtime.evaluator.score(pod, snapshot, answer.diagnosis)
    taken, left = np.searchsorted(node_scores.rows, (answer.row, instead)).tolist()
    return {name: int(scores[taken]) - int(scores[left]) for name, scores in node_scores.per_plugin.items()}


def _name(snapshot: Snapshot, row: int | None) -> str:
    return "" if row is None else snapshot.nodes.names[row]
