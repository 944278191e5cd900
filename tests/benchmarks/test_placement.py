"""How evenly pods lie, counted over every node and zone."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.placement import Placement, overcommitted, thousandths
from benchmarks.scheduler_perf import WORKLOADS

TWENTY = WORKLOADS["peer-basic"].sized(20, 1)


def on(*nodes: int) -> dict[str, str]:
    return {f"pod-{i}": f"node-{node:06d}" for i, node in enumerate(nodes)}


def test_a_node_without_a_pod_counts() -> None:
    found = Placement.of(TWENTY, on(*range(19)))
    assert (found.least, found.most, found.zones) == (0, 1, (1, 2))


def test_one_pod_everywhere_is_as_even_as_can_be() -> None:
    assert Placement.of(TWENTY, on(*range(20))) == Placement(1, 1, 1.0, 0.0, (2, 2))


@given(st.lists(st.integers(0, 19), max_size=80))
def test_bounds_enclose_the_mean_and_nothing_is_lost(nodes: list[int]) -> None:
    found = Placement.of(TWENTY, on(*nodes))
    counts = [Counter(nodes)[i] for i in range(20)]
    assert (found.least, found.most) == (min(counts), max(counts))
    assert found.least <= found.mean <= found.most and found.mean * 20 == len(nodes)
    assert (found.deviation == 0) == (found.least == found.most)
    assert found.zones[0] * 10 <= len(nodes) <= found.zones[1] * 10


def test_a_node_that_came_later_counts_where_it_has_pods() -> None:
    found = Placement.of(TWENTY, {"pod-0": "churned-000001"})
    assert (found.most, found.zones) == (1, (0, 0))


def test_a_node_that_holds_more_than_it_has_is_found() -> None:
    crowded = WORKLOADS["peer-basic"].sized(2, 42)
    fits = {f"pod-{i:06d}": "node-000000" for i in range(40)}
    assert list(overcommitted(crowded, fits)) == []
    told = list(overcommitted(crowded, {f"pod-{i:06d}": "node-000000" for i in range(41)}))
    assert told == ["node-000000: 4.1 of 4 cpu"]


def test_initial_pods_count_too() -> None:
    workload = WORKLOADS["PreemptionAsync"].sized(1, 5)
    assert list(overcommitted(workload, {f"pod-{i:06d}": "node-000000" for i in range(4)})) == []
    over = list(overcommitted(workload, {f"pod-{i:06d}": "node-000000" for i in range(5)}))
    assert over == ["node-000000: 4.1 of 4 cpu"]


def test_quantities_are_read_as_workloads_write_them() -> None:
    assert (thousandths("100m"), thousandths("4")) == (100, 4_000)
    assert (thousandths("500Mi"), thousandths("32Gi")) == (500 * 2**20 * 1_000, 32 * 2**30 * 1_000)
