"""How evenly pods lie, counted over every node and zone."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.placement import Placement, overcommitted
from benchmarks.scheduler_perf import WORKLOADS

TWENTY = WORKLOADS["peer-basic"].sized(20, 1)


def on(*nodes: int) -> dict[str, str]:
    return {f"pod-{i}": f"node-{node:06d}" for i, node in enumerate(nodes)}


@given(st.lists(st.integers(0, 19), max_size=80))
def test_bounds_enclose_the_mean_and_nothing_is_lost(nodes: list[int]) -> None:
    found = Placement.of(TWENTY, on(*nodes))
    counts = [Counter(nodes)[i] for i in range(20)]
    assert (found.least, found.most) == (min(counts), max(counts))
    assert found.least <= found.mean <= found.most and found.mean * 20 == len(nodes)
    assert (found.deviation == 0) == (found.least == found.most)
    assert found.zones[0] * 10 <= len(nodes) <= found.zones[1] * 10


def test_a_node_that_holds_more_than_it_has_is_found() -> None:
    crowded = WORKLOADS["peer-basic"].sized(2, 42)
    fits = {f"pod-{i:06d}": "node-000000" for i in range(40)}
    assert list(overcommitted(crowded, fits)) == []
    told = list(overcommitted(crowded, {f"pod-{i:06d}": "node-000000" for i in range(41)}))
    assert told == ["node-000000: 4.1 of 4 cpu"]
