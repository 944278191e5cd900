"""What is kept of nodes for the resource plugins: after any history of nodes and pods a whole column says what each row
says by itself, in Python's integers."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.free_room import FreeRoom
from policyengine.cluster.view import ClusterView
from policyengine.framework.rows import FEW
from policyengine.plugins.resources.allocation_columns import AllocationColumns
from policyengine.plugins.resources.balance import BalanceColumns
from policyengine.plugins.resources.balanced_allocation import NodeResourcesBalancedAllocation
from policyengine.plugins.resources.fit import NodeResourcesFit
from tests.builders import make_node, make_pod

GPU = "vendor.example/gpu"
RESOURCES: list[dict[str, Any]] = [{"name": "cpu", "weight": 3}, {"name": "memory"}, {"name": GPU, "weight": 5}]
SHAPE = {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 1}]}
FITS = [
    NodeResourcesFit(),
    NodeResourcesFit({"strategy": "MostAllocated"}),
    NodeResourcesFit({"scoringStrategy": {"type": "LeastAllocated", "resources": RESOURCES}}),
    NodeResourcesFit({"scoringStrategy": {"type": "MostAllocated", "resources": RESOURCES[:1]}}),
    NodeResourcesFit({"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": SHAPE}}),
]
BALANCES = [
    NodeResourcesBalancedAllocation(),
    NodeResourcesBalancedAllocation({"resources": [{"name": one["name"]} for one in RESOURCES]}),
]
SIZES = {
    "cpu": ("1", "2", "3500m", "7", "96"),
    "memory": ("1", "1000000007", "4Gi", "7Gi", "6Ti"),
    GPU: ("1", "3", "8"),
    "pods": ("1", "3", "110"),
}
ODD = {"cpu": ("0", "9Ei"), "memory": ("0", "41Ti", "45Ti", "4Pi", "4Ei"), GPU: ("0",), "pods": ("0",)}
"""What not every node offers, and amounts about 2**52/100, 2**52 and beyond 2**53."""
ASKED = {
    "cpu": ("0", "1m", "100m", "333m", "1", "9"),
    "memory": ("0", "1", "100Mi", "1000000007", "3Gi", "45Ti", "4Pi"),
    GPU: ("0", "1", "2"),
}


class Cluster:
    """Nodes and pods that come and go."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.view = ClusterView()
        self.oddness = rng.choice((0.0, 0.0, 0.02, 0.3))
        self.number = 0
        for number in range(rng.randint(FEW + 1, 40)):
            self.set_node(number)

    def set_node(self, number: int) -> None:
        rng = self.rng
        sizes: dict[str, str | int] = {
            name: rng.choice(ODD[name] if rng.random() < self.oddness else amounts)
            for name, amounts in SIZES.items()
            if name != GPU or number % 3 or self.oddness == 0
        }
        self.view.add_or_update_node(make_node(f"n{number}").allocatable(sizes).build())

    def pod(self, node: str = "") -> str:
        self.number += 1
        rng = self.rng
        asked: dict[str, str | int] = {
            name: rng.choice(amounts) for name, amounts in ASKED.items() if rng.random() < 0.7
        }
        pod = make_pod(f"p{self.number}").req(asked)
        built = (pod.node(node) if node else pod).build()
        self.view.add_or_update_pod(built)
        return built.metadata.uid

    def step(self) -> None:
        rng, view = self.rng, self.view
        pick = rng.random()
        standing = [uid for uid, pod in view.pods.items() if pod.node_name]
        if pick < 0.08:
            self.set_node(rng.randint(0, 45))
        elif pick < 0.12 and view.nodes.n > FEW + 1:
            view.remove_node(rng.choice(view.nodes.names))
        elif pick < 0.4 and standing:
            view.remove_pod(rng.choice(standing))
        else:
            self.pod(rng.choice(view.nodes.names))


def compare(cluster: Cluster) -> None:
    snapshot = cluster.view.snapshot()
    info = cluster.view.pods[cluster.pod()]
    count = snapshot.nodes.n
    rows = np.arange(count)
    plugins: list[NodeResourcesFit | NodeResourcesBalancedAllocation] = [*FITS, *BALANCES]
    for plugin in plugins:
        status, state = plugin.pre_score(info, snapshot)
        if status.is_success:
            each = [plugin.row_score(state, snapshot)(row) for row in range(count)]
            assert plugin.score(state, snapshot, rows).tolist() == each, plugin.name
    fit = FITS[0]
    _, state = fit.pre_filter(info, snapshot)
    each = [fit.row_filter(state, snapshot)(row) for row in range(count)]
    passing = fit.passing(state, snapshot)
    assert (passing is None) == all(each)
    assert passing is None or passing.tolist() == each
    assert (fit.filter(state, snapshot, rows).refused == 0).tolist() == each
    own = snapshot.with_table(snapshot.nodes.with_own_sums())
    own.nodes.shift_sums(rows, {"cpu": np.full(count, 200)}, np.ones(count, dtype=np.int64))
    each = [fit.row_filter(state, own)(row) for row in range(count)]
    passing = fit.passing(state, own)
    assert passing is not None
    assert passing.tolist() == each
    cluster.view.remove_pod(info.uid)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whole_columns_say_what_each_row_says(seed: int) -> None:
    cluster = Cluster(Random(seed))
    for _ in range(10):
        compare(cluster)
        for _ in range(cluster.rng.choice((0, 1, 1, 2, 5, 30))):
            cluster.step()


def test_columns_are_kept_where_nodes_are_usual_and_as_soon_as_they_are() -> None:
    view = ClusterView()
    for number in range(12):
        view.add_or_update_node(make_node(f"n{number}").allocatable(cpu="4", memory="8Gi", pods=9).build())
    names = ("cpu", "memory")

    def are_usual() -> tuple[bool, bool]:
        allocation = view.nodes.follower((AllocationColumns, names), lambda: AllocationColumns(names))
        balance = view.nodes.follower((BalanceColumns, names), lambda: BalanceColumns(names))
        assert allocation is not None
        assert balance is not None
        return allocation.are_usual, balance.are_usual

    assert are_usual() == (True, True)
    view.add_or_update_node(make_node("n3").allocatable(cpu="4", memory="0", pods=9).build())
    assert are_usual() == (False, True)
    view.add_or_update_node(make_node("n3").allocatable(cpu="4", memory="8Pi", pods=9).build())
    assert are_usual() == (False, False)
    view.add_or_update_node(make_node("n3").allocatable(cpu="4", memory="8Gi", pods=9).build())
    assert are_usual() == (True, True)


def test_that_all_nodes_have_room_is_known_again_after_one_was_full() -> None:
    view = ClusterView()
    for number in range(12):
        view.add_or_update_node(make_node(f"n{number}").allocatable(cpu="4", memory="8Gi", pods=9).build())
    view.add_or_update_pod(make_pod("large").req(cpu="3900m").node("n7").build())

    def some_lack(amount: int) -> bool:
        room = view.nodes.follower(FreeRoom, FreeRoom)
        assert room is not None
        return room.some_lack(view.nodes, "cpu", amount)

    assert (some_lack(100), some_lack(101)) == (False, True)
    view.remove_pod(next(iter(view.pods)))
    assert (some_lack(4000), some_lack(4001)) == (False, True)
