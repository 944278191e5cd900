"""A plugin broken on purpose: the table counts it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.diagnosis.explain import explain
from policyengine.framework.profile import Profile
from policyengine.framework.status import State, Status
from policyengine.plugins.node_state.taint_toleration import TaintToleration
from policyengine.plugins.registry import default_profile
from policyengine.plugins.selectors.tolerations import HARD, TaintCounts
from tests.golden_table import Comparisons
from tests.plugins import random_cluster


class BlindToExists(TaintToleration):
    """Overlooks tolerations with the operator Exists."""

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        status, _ = super().pre_filter(pod, snapshot)
        seen = tuple(one for one in pod.shape.spec.tolerations if one.operator != "Exists")
        return status, TaintCounts(seen, HARD)


def broken(plugin: Any) -> Profile:
    profile = default_profile()
    return replace(profile, filters=tuple(plugin if one.name == plugin.name else one for one in profile.filters))


def golden(seed: int) -> dict[str, Any]:
    """A recorded case, the recording taken from the unbroken profile."""
    cluster = random_cluster.cluster(Random(seed), nodes=8, pods=16, pending=4)
    return cluster | {"result": explain(cluster, default_profile()), "seed": seed}


def counts_of(profile: Profile, most: int = 100) -> Comparisons:
    """Over random clusters, until one differs."""
    counts = Comparisons()
    for seed in range(most):
        cluster = golden(seed)
        counts.compare(f"random {seed}", cluster, explain(cluster, profile))
        if counts.differ:
            break
    return counts


def test_the_unbroken_profile_differs_nowhere() -> None:
    counts = counts_of(default_profile(), most=4)
    assert not counts.differ
    assert "TaintToleration score" in counts.table()
    assert counts.report() == counts.table()


def test_a_wrong_refusal_is_counted_and_told() -> None:
    counts = counts_of(broken(BlindToExists()))
    assert counts.differ["TaintToleration"] > 0
    assert "TaintToleration: ours " in counts.report()
