"""Required affinity lets the first pod of a series in. The rest is held against the oracle and the golden table."""

import numpy as np

from policyengine.cluster.view import ClusterView
from policyengine.plugins.affinity.inter_pod_affinity import InterPodAffinity
from tests.builders import make_node, make_pod


def test_a_series_that_is_all_gone_begins_on_any_node_again() -> None:
    wanted = make_pod("waiting").label("app", "mine").pod_affinity("topology.kubernetes.io/zone", {"app": "mine"})
    view = ClusterView()
    for number in range(4):
        view.add_or_update_node(make_node(f"n{number}").label("topology.kubernetes.io/zone", f"z{number % 2}").build())
    standing = view.add_or_update_pod(make_pod("standing").label("app", "mine").node("n0").build()).new
    pod = view.add_or_update_pod(wanted.build()).new
    assert pod is not None and standing is not None
    plugin, every_row = InterPodAffinity(), np.arange(4)
    _, state = plugin.pre_filter(pod, view.snapshot())
    assert plugin.filter(state, view.snapshot(), every_row).refused.tolist() == [0, 1, 0, 1]
    view.remove_pod(standing.uid)
    _, rows = plugin.update(state, view.snapshot(), np.array([0]))
    assert rows.tolist() == [1, 3]
    assert plugin.filter(state, view.snapshot(), every_row).refused.tolist() == [0, 0, 0, 0]
