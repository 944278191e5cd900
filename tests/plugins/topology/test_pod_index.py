"""The kinds of pods on the nodes, and what is remembered of them."""

import numpy as np

from policyengine.cluster.view import ClusterView
from policyengine.plugins.topology.pod_index import FEW_KINDS, ByKind, DomainCounts, pod_index
from tests.builders import make_node, make_pod


def test_what_is_remembered_of_kinds_does_not_grow_with_the_pods_that_came_and_went() -> None:
    view = ClusterView()
    view.add_or_update_node(make_node("n").label("zone", "a").build())
    asked: list[str] = []
    weights = ByKind(lambda kind: asked.append(kind.labels["job"]) or 1)
    counts = DomainCounts("zone", lambda kind: 1, lambda index: index.kinds.values())
    counts.count(view.nodes, pod_index(view.nodes))
    for number in range(10 * FEW_KINDS):
        view.add_or_update_pod(make_pod("p").uid(f"u{number}").label("job", str(number)).node("n").build())
        index = pod_index(view.nodes)
        weights.trim(index)
        assert [weights[kind] for kind in index.kinds.values()] == [1]
        counts.follow(index, np.array([0]))
        assert len(weights) <= FEW_KINDS + 3
        assert counts.sums.tolist() == [1, 0]
    assert len(asked) == 10 * FEW_KINDS, "what stays is asked about once"
