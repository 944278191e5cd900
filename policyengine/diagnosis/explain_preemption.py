"""Whom a pod would preempt: the `preemption` object of `policyengine explain`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.plugins.preemption.default_preemption import DefaultPreemption

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import ClusterView


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
