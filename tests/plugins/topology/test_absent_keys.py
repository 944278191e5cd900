"""Topology keys that no node has: pods name as many as they like, and others neither count nor keep them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.affinity.affinity_counts import AffinityCounts
from policyengine.plugins.registry import default_profile
from policyengine.plugins.topology.pod_index import PodIndex
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

SOFT = "ScheduleAnyway"
WAYS: dict[str, Callable[[PodBuilder], PodBuilder]] = {
    "near": lambda pod: pod.pod_affinity("rack", {"app": "web"}),
    "first of its kind": lambda pod: pod.label("app", "new").pod_affinity("rack", {"app": "new"}),
    "away": lambda pod: pod.pod_anti_affinity("rack", {"app": "web"}),
    "rather near": lambda pod: pod.pod_affinity("rack", {"app": "web"}, weight=7),
    "spread": lambda pod: pod.spread("rack", {"app": "web"}),
    "rather spread": lambda pod: pod.spread("zone", {"app": "web"}, when_unsatisfiable=SOFT).spread(
        "rack", {"app": "web"}, when_unsatisfiable=SOFT
    ),
    "by host": lambda pod: pod.spread("kubernetes.io/hostname", {"app": "web"}, when_unsatisfiable=SOFT),
    "by the system's defaults": lambda pod: pod.label("app", "web"),
}


def node(number: int) -> NodeBuilder:
    return make_node(f"n{number}").capacity(cpu="4", memory="8Gi", pods="10").label("zone", f"z{number % 2}")


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_comes_and_goes_is_counted_as_by_an_evaluator_that_has_seen_nothing(way: str) -> None:
    view, kept = ClusterView(), Evaluator(default_profile())
    pod = WAYS[way](make_pod("p").req(cpu="1")).info()
    steps: list[NodeBuilder | PodBuilder] = [
        *(node(number) for number in range(4)),
        make_pod("web").label("app", "web").node("n1"),
        node(1).label("rack", "r1").label("kubernetes.io/hostname", "n1"),
        node(2).label("rack", "r1"),
        make_pod("web2").label("app", "web").node("n2"),
        node(3).label("rack", "r2").label("kubernetes.io/hostname", "n3"),
        node(1),
        make_pod("web3").label("app", "web").node("n3"),
        node(0).label("rack", "r1"),
        node(2),
        node(3),
        node(0),
    ]
    for step in steps:
        if isinstance(step, NodeBuilder):
            view.add_or_update_node(step.build())
        else:
            view.add_or_update_pod(step.build())
        answers = []
        for evaluator in (kept, Evaluator(default_profile())):
            diagnosis = evaluator.filter(pod, view.snapshot())
            scores = evaluator.score(pod, view.snapshot(), diagnosis)
            shares = [(one.plugin, one.scores.tolist()) for one in scores.shares]
            answers.append(([diagnosis.refusal(row) for row in range(view.nodes.n)], shares))
        assert answers[0] == answers[1], step.json()["metadata"]


def test_what_a_pod_says_of_absent_keys_costs_those_after_it_nothing() -> None:
    view = ClusterView()
    view.add_or_update_node(node(0).build())
    spiteful = make_pod("spiteful").node("n0")
    for number in range(100):
        spiteful.pod_anti_affinity(f"absent-{number}", {}).pod_affinity(f"absent-{number}", {}, weight=1)
    view.add_or_update_pod(spiteful.build())

    def everybody(index: PodIndex) -> list[object]:
        return list(index.kinds.values())

    counts = AffinityCounts(lambda kind: [(term.key, 1) for term in kind.terms.anti_affinity], everybody)
    counts.update(view.nodes, np.arange(1))
    assert counts.by_key == {}
    view.add_or_update_node(node(0).label("absent-7", "v").build())
    counts.update(view.nodes, np.arange(1))
    assert list(counts.by_key) == ["absent-7"]
    assert counts.by_key["absent-7"].sums.tolist() == [1, 0]


def test_thousands_of_soft_constraints_over_absent_keys_make_no_column_each() -> None:
    view, evaluator = ClusterView(), Evaluator(default_profile())
    for number in range(3):
        view.add_or_update_node(node(number).build())
    pod = make_pod("p").spread("zone", {"app": "web"}, when_unsatisfiable=SOFT)
    for number in range(1000):
        pod.spread(f"absent-{number}", {"app": "web"}, when_unsatisfiable=SOFT)
    info, (plugin,) = pod.info(), [one for one, _ in default_profile().scores if one.name == "PodTopologySpread"]
    _, state = plugin.pre_score(info, view.snapshot())
    assert plugin.score(state, view.snapshot(), np.arange(3)).shape == (3, 2)
    diagnosis = evaluator.filter(info, view.snapshot())
    (share,) = [
        one for one in evaluator.score(info, view.snapshot(), diagnosis).shares if one.plugin == "PodTopologySpread"
    ]
    assert share.scores.tolist() == [0, 0, 0]
