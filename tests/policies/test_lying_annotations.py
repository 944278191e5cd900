"""Annotations that lie: the policies decide by what they have, and an honest node is preferred."""

from __future__ import annotations

import pytest

from tests.policies.test_formulas import evaluated, node, pod

SIZE = {"cpu": "8", "memory": "16Gi", "pods": "110"}
MEASURED = ("mean-free-cpu", "std-free-cpu", "forcasted-free-cpu")
NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "much", "", "0x10", "1_000"]
FAR_OFF = ["-5000", "1e308", "99999999999999999999"]


@pytest.mark.parametrize("text", [*NO_NUMBERS, *FAR_OFF])
@pytest.mark.parametrize(("policy", "score"), [("safe-overload", "safety"), ("safe-balance", "balance")])
def test_an_honest_node_is_preferred_to_one_that_lies(policy: str, score: str, text: str) -> None:
    lying = node("lying", SIZE, dict.fromkeys(MEASURED, text))
    honest = node("honest", SIZE, {"mean-free-cpu": "4000", "std-free-cpu": "100"})
    found = evaluated(policy, [lying, honest], [pod("p", {"cpu": "500m", "memory": "1Gi"})])
    assert found["chosen"] == "honest"
    if text in NO_NUMBERS:
        assert found["scores"]["lying"][score] == 0
    else:
        assert "lying" in found["rejected"] or 0 <= found["scores"]["lying"][score] < found["scores"]["honest"][score]


@pytest.mark.parametrize("text", [*NO_NUMBERS, *FAR_OFF])
def test_a_congestion_or_reward_that_is_none_keeps_no_pod_waiting(text: str) -> None:
    for policy, key in (("congestion", "congestion-factor"), ("rewards", "default.rewards.policyengine.io/web")):
        waiting = pod("p", {"cpu": "500m"})
        waiting["metadata"]["labels"] = {"app": "web"}
        found = evaluated(policy, [node("lying", SIZE, {key: text})], [waiting])
        assert found["chosen"] == "lying"
