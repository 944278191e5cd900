"""Why the pods of a trial went where they went: each pod's last attempt, evaluated again by the same compiled profile.

A cycle keeps no record of what it weighed. Right after it, before anything it asked for is carried out, the cluster
is as the cycle found it but for the room it took; with that given back for a moment, the profile's evaluator gives
the same answer again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.view import Snapshot
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.status import Status
from policyengine.scheduler.state import SchedulerState


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the profile said of one pod. Texts are written out: they outlive the snapshot."""

    feasible: tuple[str, ...]
    """Nodes that passed every filter, by name."""
    refused: Mapping[str, Status]
    """Node -> the first refusal; of all nodes where the pod was refused as a whole."""
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Feasible node -> plugin or rule -> score, 0 to 100, before its weight."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Feasible node -> weighted sum."""
    filtered: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)
    """Filter that evaluated nodes -> (let one pass, refused one)."""


def attempted(evaluator: Evaluator, state: SchedulerState, uid: str, without: Sequence[str]) -> Attempt | None:
    """What the evaluator says of a pod as if it waited, the pods of these UIDs not there; None of one that its profile
    does not serve."""
    pod = state.view.pods.get(uid)
    if pod is None or pod.scheduler_name != evaluator.profile.scheduler_name:
        return None
    with as_pending(state, pod, without) as (pending, snapshot):
        return _attempt(evaluator, pending, snapshot, filter_with_nominated(evaluator, state.view, pending))


def assumed_since(state: SchedulerState, uids: Sequence[str], uid: str) -> list[str]:
    """Those of the pods that a cycle has just tried, in this order, whose room was taken with this one's, or after."""
    tried = (state.view.pods.get(other) for other in uids[uids.index(uid) :])
    return [pod.uid for pod in tried if pod is not None and pod.state is PodState.ASSUMED]


@contextmanager
def as_pending(state: SchedulerState, pod: PodInfo, without: Sequence[str]) -> Iterator[tuple[PodInfo, Snapshot]]:
    """The pod as if it waited, and the cluster without the pods of these UIDs, until the block ends."""
    with state.view.hypothetically(remove=without) as snapshot:
        pending = copy(pod)
        pending.node_name, pending.state = "", PodState.PENDING
        yield pending, snapshot


def _attempt(evaluator: Evaluator, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> Attempt:
    names = snapshot.nodes.names
    node_scores = evaluator.score(pod, snapshot, diagnosis)
    feasible = set(diagnosis.feasible.tolist())
    shares = {share.plugin: share.scores.tolist() for share in node_scores.shares}
    rows = node_scores.rows.tolist()
    asked = [] if diagnosis.pre_filter is not None else evaluator.filters_asked(pod, snapshot)
    return Attempt(
        feasible=tuple(sorted(names[row] for row in feasible)),
        refused={name: diagnosis.refusal(row) for row, name in enumerate(names) if row not in feasible},
        scores={
            names[row]: {plugin: scores[place] for plugin, scores in shares.items()} for place, row in enumerate(rows)
        },
        totals={names[row]: total for row, total in zip(rows, node_scores.total.tolist(), strict=True)},
        filtered={
            plugin.name: (bool((column.values == 0).any()), bool((column.values != 0).any()))
            for plugin, column in asked
            if column.status.is_success and len(column.values)
        },
    )
