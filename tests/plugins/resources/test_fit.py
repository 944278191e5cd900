"""NodeResourcesFit: what of a pod's requests counts in its score."""

from __future__ import annotations

import numpy as np
import pytest

from policyengine.cluster.node_columns import NodeColumns
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import build, in_tree_profile
from tests.builders import PodBuilder, make_node, make_pod


def score_of(pod: PodBuilder, *standing: PodBuilder) -> int:
    """On a node of 4 cpus and 1000 Mi, by LeastAllocated."""
    view = ClusterView()
    view.add_or_update_node(make_node("n").capacity(cpu="4", memory="1000Mi", pods="9").build())
    view.add_or_update_node(make_node("other").capacity(cpu="4", memory="1000Mi", pods="9").build())
    for one in standing:
        view.add_or_update_pod(one.node("n").build())
    evaluator = Evaluator(in_tree_profile("p", "s", "", {"NodeResourcesFit": (build("NodeResourcesFit"), None)}))
    snapshot, info = view.snapshot(), pod.info()
    node_scores = evaluator.score(info, snapshot, evaluator.filter(info, snapshot))
    row = snapshot.nodes.row_of["n"]
    return int(node_scores.total[node_scores.rows.tolist().index(row)])


def as_a_whole(name: str) -> PodBuilder:
    return make_pod(name).pod_level({"cpu": "2", "memory": "500Mi"})


def test_what_a_pod_asks_for_as_a_whole_does_not_count_in_its_own_score() -> None:
    """As if its container, which asks for nothing, were all: 100m of 4, 200Mi of 1000Mi."""
    assert score_of(as_a_whole("p")) == (97 + 80) // 2


def test_it_counts_in_the_score_of_those_that_come_later() -> None:
    assert score_of(make_pod("q").req(cpu="1", memory="100Mi"), as_a_whole("p")) == (25 + 40) // 2


@pytest.mark.parametrize("many", [3, 55, 100])
def test_of_resources_that_no_node_has_each_is_named_and_none_is_looked_up_on_every_node(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, looked_up = ClusterView(), set()
    for number in range(40):
        full = number % 2
        view.add_or_update_node(make_node(f"n{number}").capacity(cpu="1" if full else "8", pods="9").build())
    free = NodeColumns.free

    def noted(table: NodeColumns, resource: str, with_defaults: bool = False) -> object:
        looked_up.add(resource)
        return free(table, resource, with_defaults)

    monkeypatch.setattr(NodeColumns, "free", noted)
    names = [f"x/{place}" for place in range(many)]
    plugin, snapshot = build("NodeResourcesFit"), view.snapshot()
    _, state = plugin.pre_filter(make_pod("p").req({"cpu": "2", **dict.fromkeys(names, 1)}).info(), snapshot)
    together = plugin.filter(state, snapshot, np.arange(40))
    assert not looked_up & set(names)
    for row in range(40):
        one = together.refusals[together.refused[row] - 1]
        cpu = ["Insufficient cpu"] if row % 2 else []
        assert sorted(one.reasons) == sorted([*cpu, *(f"Insufficient {name}" for name in names)])
        (alone,) = plugin.filter(state, snapshot, np.array([row])).refused
        assert alone == together.refused[row]
