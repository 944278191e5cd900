"""NodeResourcesFit: what of a pod's requests counts in its score."""

from __future__ import annotations

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
