"""A plugin broken on purpose: the table counts it, and the case that shows it comes out small."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.diagnosis.explain import explain
from policyengine.framework.profile import Profile
from policyengine.framework.status import Rows, State, Status, Verdicts
from policyengine.plugins.node_state.taint_toleration import TaintToleration
from policyengine.plugins.registry import default_profile
from policyengine.plugins.resources.fit import NodeResourcesFit
from policyengine.plugins.selectors.tolerations import HARD, TaintTable
from tests.golden_table import UsageCounts, smallest_case
from tests.minimise import minimise
from tests.plugins import random_cluster


class BlindToExists(TaintToleration):
    """Overlooks tolerations with the operator Exists."""

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        status, _ = super().pre_filter(pod, snapshot)
        seen = tuple(one for one in pod.shape.spec.tolerations if one.operator != "Exists")
        return status, TaintTable(seen, HARD)


class Generous(NodeResourcesFit):
    """Refuses no node."""

    def filter(self, state: State, snapshot: Snapshot, rows: Rows) -> Verdicts:
        return Verdicts(np.zeros(len(rows), dtype=np.int16), ())


def broken(plugin: Any) -> Profile:
    profile = default_profile()
    return replace(profile, filters=tuple(plugin if one.name == plugin.name else one for one in profile.filters))


def golden(seed: int) -> dict[str, Any]:
    """A recorded case, the recording taken from the unbroken profile."""
    cluster = random_cluster.cluster(Random(seed), nodes=8, pods=16, pending=4)
    return cluster | {"result": explain(cluster, default_profile()), "seed": seed}


def counts_of(profile: Profile, most: int = 100) -> UsageCounts:
    """Over random clusters, until one differs."""
    counts = UsageCounts(profile)
    for seed in range(most):
        cluster = golden(seed)
        counts.compare(f"random {seed}", cluster, explain(cluster, profile))
        if counts.differ:
            break
    return counts


def test_the_unbroken_profile_differs_nowhere() -> None:
    counts = counts_of(default_profile(), most=12)
    assert not counts.differ
    assert "TaintToleration score" in counts.table()
    assert counts.report() == counts.table()


def test_a_wrong_refusal_is_counted_and_shrinks_to_one_node_and_one_toleration() -> None:
    counts = counts_of(broken(BlindToExists()))
    assert counts.differ["TaintToleration"] > 0
    case = smallest_case(counts.first[0], counts.profile)
    (node,), (pod,) = case["nodes"], case["pending"]
    assert len(node["spec"]["taints"]) == 1
    (toleration,) = pod["spec"]["tolerations"]
    assert toleration["operator"] == "Exists"
    assert not case.get("pods")
    assert "affinity" not in pod["spec"]
    assert "smallest input that shows it" in counts.report()


def test_a_missing_refusal_shrinks_too() -> None:
    counts = counts_of(broken(Generous()))
    case = smallest_case(counts.first[0], counts.profile)
    assert len(case["nodes"]) == 1
    assert len(case["pending"]) == 1
    assert len(str(case)) < 600


def test_minimising_keeps_what_makes_the_case_fail() -> None:
    case = {"a": [1, 2, 3, {"x": 1, "y": 2}], "b": {"c": {"d": 4}}}
    assert minimise(case, lambda smaller: smaller["a"][-1]["x"] == 1) == {"a": [{"x": 1}]}


def test_a_case_that_does_not_fail_is_not_minimised() -> None:
    with pytest.raises(AssertionError, match="nothing to minimise"):
        minimise({"a": 1}, lambda smaller: False)
