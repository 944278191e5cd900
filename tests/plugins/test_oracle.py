"""The columns say, on random clusters, what the naive oracle says."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.diagnosis.explain import explain
from policyengine.plugins.registry import default_profile
from tests.plugins import oracle, oracle_scores, random_cluster


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), nodes=st.sampled_from([*range(1, 15), 60]), pods=st.sampled_from([*range(24), 150]))
def test_verdicts_reasons_and_scores_are_those_of_the_oracle(seed: int, nodes: int, pods: int) -> None:
    objects = random_cluster.cluster(Random(seed), nodes, pods, pending=4)
    cluster = oracle.Cluster(objects)
    for pod, answer in zip(objects["pending"], explain(objects, default_profile()), strict=True):
        assert "preFilter" not in answer
        expected = oracle.refusals(cluster, pod, oracle.FILTERS)
        for name, refusal in expected.items():
            ours = answer["rejected"].get(name)
            mine = ours and (ours["plugin"], ours["code"], tuple(sorted(ours["reasons"])))
            assert mine == refusal, (pod, name)
        feasible = [name for name, refusal in expected.items() if refusal is None]
        wanted = oracle_scores.scores(cluster, pod, feasible)
        assert answer["scores"] == wanted, pod
        assert answer["total"] == {name: sum(shares.values()) for name, shares in wanted.items()}
