"""Why a pod has the node it has: from the record of the decision, or, where none is left, worked out as of now. The
keys are those of `why` in docs/explain.md#json; `how` is that of `Choice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policyengine.cluster.kinds import PODS
from policyengine.cluster.objects import format_moment
from policyengine.cluster.pod_info import PodInfo
from policyengine.diagnosis.dump import DumpedObject
from policyengine.diagnosis.forecast import listed, waits
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.profile import Profile
from policyengine.framework.scoring import Choice, unscored
from policyengine.framework.status import Status
from policyengine.scheduler.pod_timeline import Placement
from policyengine.scheduler.state import SchedulerState
from policyengine.trials.trial import Trial
from policyengine.trials.trial_attempts import as_pending
from policyengine.trials.trial_cluster import uid_of

NOT_KEPT = (
    "with no record of the decision (somebody else took it, or this scheduler before it led last, or later ones pushed "
    "it out)"
)
OFFLINE = "with no record of the decision (only the scheduler that took it keeps one)"
REFUSED = "refused"


def why_here(state: SchedulerState, pod: PodInfo) -> dict[str, Any] | None:
    """Why a pod of a running scheduler has its node; None where it has none, or no policy serves it."""
    if not pod.node_name:
        return None
    kept = state.placement(pod.uid)
    if kept is not None and kept.choice.node == pod.node_name:
        return _recorded(kept)
    said = NOT_KEPT
    if kept is not None:
        said = f"since somebody else put it here (this scheduler chose {kept.choice.node} at {format_moment(kept.at)})"
    return _worked_out(state, pod, said)


def explain_placed(
    objects: Sequence[DumpedObject], profiles: Sequence[Profile], pod: str, now: float
) -> dict[str, Any]:
    """`{pod, schedulerName, outcome: "placed", node, why}` of a pod that is on a node, named `namespace/name`, among a
    cluster's objects. `why` is null where no profile serves it; `now`: seconds since the epoch.

    Raises:
        KeyError: there is no such pod on a node.
    """
    pods = [one.object for one in objects if one.kind == PODS.kind]
    found = next((one for one in pods if one.metadata.key == pod and one.spec.node_name), None)
    if found is None:
        raise KeyError(pod)
    waiting = {uid_of(one): one for one in pods if waits(one)}
    state = Trial(profiles, now, limit=len(objects) + 2, listed=listed(objects, waiting, now)).state
    info = state.view.pods.get(uid_of(found))
    return {
        "pod": pod,
        "schedulerName": found.spec.scheduler_name,
        "outcome": "placed",
        "node": found.spec.node_name,
        "why": None if info is None else _worked_out(state, info, OFFLINE),
    }


def _recorded(kept: Placement) -> dict[str, Any]:
    room = kept.room
    return {
        "basis": "record",
        "note": "",
        "at": format_moment(kept.at),
        "waited": round(kept.at - kept.queued_at, 3),
        "attempt": kept.attempt,
        "policy": {"name": kept.policy, "hash": kept.policy_hash},
        **_weighed(kept.choice, kept.tiers),
        "room": None if room is None else {"node": room.node, "victims": list(room.victims), "why": room.why},
    }


def _worked_out(state: SchedulerState, pod: PodInfo, said: str) -> dict[str, Any] | None:
    profile = next((one for one in state.profiles if one.scheduler_name == pod.scheduler_name), None)
    if profile is None:
        return None
    evaluator = Evaluator(profile)
    with as_pending(state, pod, [pod.uid]) as (pending, snapshot):
        diagnosis = filter_with_nominated(evaluator, state.view, pending)
        names, row = snapshot.nodes.names, snapshot.nodes.row_of.get(pod.node_name)
        scores = evaluator.score(pending, snapshot, diagnosis)
        taken = names[scores.best(pod.uid)] if len(diagnosis.feasible) else ""
        if row is not None and row in diagnosis.feasible:
            choice, refusal = scores.choose(row, diagnosis, names), None
        else:
            choice = unscored(REFUSED, diagnosis, pod.node_name)
            refusal = None if row is None else diagnosis.refusal(row)
    return {
        "basis": "now",
        "note": f"worked out as of now, {said}: {_became(pod.node_name, taken, refusal, choice)}",
        "policy": {"name": profile.name, "hash": profile.policy_hash},
        **_weighed(choice, profile.tiers),
    }


def _became(node: str, taken: str, refusal: Status | None, choice: Choice) -> str:
    """What would become of the pod were it placed anew."""
    if choice.how != REFUSED:
        return "it would be placed here again" if taken == node else f"it would be placed on {taken}"
    gone = (
        "its node is not there any more"
        if refusal is None
        else f"{refusal.plugin or 'its spec'} would refuse it here ({refusal.message})"
    )
    return f"{gone}, and it would be placed on {taken}" if taken else f"{gone}, and no other node would take it"


def _weighed(choice: Choice, tiers: frozenset[str]) -> dict[str, Any]:
    scores = choice.weighted()
    found = {"tiers": [name for name, _ in choice.shares if name in tiers]}
    return {
        "how": choice.how,
        "nodes": choice.nodes,
        "feasible": choice.feasible,
        "refused": dict(choice.refused),
        "scores": scores,
        "total": {node: sum(shares.values()) for node, shares in scores.items()},
        "weights": dict(choice.shares),
        **(found if found["tiers"] else {}),
    }
