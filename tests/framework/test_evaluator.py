"""The evaluator: order, narrowing, ties, skipped plugins, events."""

from __future__ import annotations

import itertools

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import build, default_profile, in_tree_profile
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod


def view_of(*nodes: NodeBuilder) -> ClusterView:
    view = ClusterView()
    for node in nodes:
        view.add_or_update_node(node.build())
    return view


def pending(view: ClusterView, pod: PodBuilder) -> PodInfo:
    change = view.add_or_update_pod(pod.build())
    assert change.new is not None
    return change.new


def roomy(name: str) -> NodeBuilder:
    return make_node(name).allocatable(cpu="4", memory="8Gi", pods=110)


def daemon(*names: str) -> PodBuilder:
    return make_pod("daemon").node_affinity(("metadata.name", "In", list(names)), fields=True)


def test_the_tied_node_next_on_the_ring_is_chosen_whatever_the_order_of_rows() -> None:
    chosen = set()
    for order in itertools.permutations("abcd"):
        view = view_of(*(roomy(name) for name in order))
        pod = pending(view, make_pod("p"))
        snapshot = view.snapshot()
        evaluator = Evaluator(default_profile())
        node_scores = evaluator.score(pod, snapshot, evaluator.filter(pod, snapshot))
        assert len(set(node_scores.total.tolist())) == 1
        chosen.add(snapshot.nodes.names[node_scores.best(pod.uid)])
    assert len(chosen) == 1


def test_a_pod_for_one_node_leaves_the_others_in_kube_schedulers_words() -> None:
    view = view_of(roomy("a"), roomy("b").unschedulable(), roomy("c"))
    pod = pending(view, daemon("b"))
    diagnosis = Evaluator(default_profile()).filter(pod, view.snapshot())
    assert len(diagnosis.feasible) == 0
    assert diagnosis.message() == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert diagnosis.plugins == {"NodeAffinity", "NodeUnschedulable"}


def test_terms_that_name_different_nodes_at_once_refuse_the_pod() -> None:
    view = view_of(roomy("a"), roomy("b"))
    names = (("metadata.name", "In", ["a"]), ("metadata.name", "In", ["b"]))
    pod = pending(view, make_pod("p").node_affinity(*names, fields=True))
    diagnosis = Evaluator(default_profile()).filter(pod, view.snapshot())
    assert diagnosis.pre_filter is not None
    assert diagnosis.pre_filter.reasons == ("pod affinity terms conflict",)


def test_a_plugin_with_nothing_to_say_has_no_share() -> None:
    view = view_of(roomy("a"))
    pod = pending(view, make_pod("p"))
    evaluator = Evaluator(default_profile())
    node_scores = evaluator.score(pod, view.snapshot(), evaluator.filter(pod, view.snapshot()))
    assert list(node_scores.per_plugin) == ["TaintToleration", "NodeResourcesFit", "ImageLocality"]


def test_without_plugins_every_node_fits_and_scores_nothing() -> None:
    view = view_of(roomy("a"), roomy("b"))
    pod = pending(view, make_pod("p").req(cpu="99"))
    evaluator = Evaluator(Profile("none", "s", ""))
    node_scores = evaluator.score(pod, view.snapshot(), evaluator.filter(pod, view.snapshot()))
    assert node_scores.rows.tolist() == [0, 1]
    assert node_scores.total.tolist() == [0, 0]
    assert node_scores.per_plugin == {}


def test_an_evaluator_taken_to_another_cluster_forgets_the_first() -> None:
    evaluator = Evaluator(default_profile())
    for view, fits in ((view_of(roomy("a")), 1), (view_of(roomy("a").taint("gpu"), roomy("b").taint("x")), 0)):
        pod = pending(view, make_pod("p"))
        assert len(evaluator.filter(pod, view.snapshot()).feasible) == fits


def test_an_earlier_judgement_keeps_its_meaning() -> None:
    view = view_of(*(roomy(f"n{number}") for number in range(9)))
    evaluator = Evaluator(default_profile())
    pod, other = pending(view, make_pod("p").req(cpu="3")), pending(view, make_pod("q").req(cpu="3"))
    before = evaluator.filter(pod, view.snapshot())
    scores = evaluator.score(pod, view.snapshot(), before)
    total = scores.total.tolist()
    view.assume(other.uid, "n4")
    after = evaluator.filter(pod, view.snapshot())
    assert evaluator.score(pod, view.snapshot(), after).total.tolist() != total == scores.total.tolist()
    row = view.nodes.row_of["n4"]
    assert before.refusal(row).is_success
    assert after.refusal(row).reasons == ("Insufficient cpu",)


def test_events_are_found_by_the_plugins_name() -> None:
    profile = default_profile()
    assert profile.events_of("NodeName")
    assert profile.events_of("ImageLocality") == ()
    assert profile.events_of("no such plugin") == ()


def test_weights_multiply_the_scores() -> None:
    view = view_of(roomy("a"))
    pod = pending(view, make_pod("p"))
    plugins = {"NodeResourcesFit": (build("NodeResourcesFit"), 7)}
    evaluator = Evaluator(in_tree_profile("w", "s", "", plugins))
    node_scores = evaluator.score(pod, view.snapshot(), evaluator.filter(pod, view.snapshot()))
    assert node_scores.total.tolist() == [7 * 97]
