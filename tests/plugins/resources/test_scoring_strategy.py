"""Scoring strategies: as documented, and their arguments."""

from __future__ import annotations

import numpy as np

from policyengine.cluster.view import ClusterView
from policyengine.plugins.resources.scoring_strategy import AllocationStrategy, read_strategy
from tests.builders import make_node

SHAPE = [{"utilization": 0, "score": 10}, {"utilization": 35, "score": 3}, {"utilization": 100, "score": 7}]
RATIO = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": SHAPE}}


def score(strategy: AllocationStrategy, cpu: str, wanted: int) -> int:
    view = ClusterView()
    view.add_or_update_node(make_node("n").allocatable(cpu=cpu, memory="0", pods=1).build())
    return int(strategy.score(view.nodes, strategy.resources.asked((wanted, 0)), np.array([0]))[0])


def test_the_strategies_score_as_documented() -> None:
    assert score(read_strategy(None, None), "4", 1000) == 75
    assert score(read_strategy(None, "MostAllocated"), "4", 1000) == 25
    assert score(read_strategy(None, "MostAllocated"), "4", 9000) == 100
    assert score(read_strategy(None, None), "4", 9000) == 0
    assert score(read_strategy(RATIO, None), "4", 0) == 100
    assert score(read_strategy(RATIO, None), "4", 1400) == 30
    assert score(read_strategy(RATIO, None), "4", 4000) == 70
    # between 0 (100) and 35 (30): 100 - 70·10/35 = 80, towards zero
    assert score(read_strategy(RATIO, None), "4", 400) == 80
