"""DefaultPreemption: what arithmetic says of all nodes at once is what trying out each of them says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.journal import stable_hash
from policyengine.cluster.objects import decode
from policyengine.cluster.view import ClusterView
from policyengine.cluster.workload_objects import PodDisruptionBudget
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.framework.status import Code
from policyengine.plugins.preemption import dry_run
from policyengine.plugins.preemption.candidate_node import Candidate, ranks_of
from policyengine.plugins.preemption.default_preemption import DefaultPreemption
from policyengine.plugins.preemption.placed_pods import NOBODY, placed_pods
from policyengine.plugins.preemption.victim_arithmetic import known_filters
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from tests.builders import PodBuilder, make_node, make_pod
from tests.cluster.consistency import validate_view
from tests.cluster.view_dump import dump_view

LABELS = st.sampled_from([{}, {"app": "a"}, {"app": "b"}])
standing_pod = st.fixed_dictionaries(
    {
        "cpu": st.integers(0, 3),
        "gpu": st.integers(0, 1),
        "priority": st.integers(-2, 3),
        "labels": LABELS,
        "started": st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
        "port": st.sampled_from([0, 0, 0, 80]),
        "apart": st.sampled_from([False, False, False, True]),
    }
)
GONE = ("n0-p0",)
cluster = st.lists(
    st.fixed_dictionaries(
        {"pods": st.lists(standing_pod, max_size=6), "room": st.integers(3, 7), "cordoned": st.booleans()}
    ),
    min_size=1,
    max_size=5,
)
budgets = st.lists(
    st.fixed_dictionaries(
        {
            "app": st.sampled_from(["a", "b", ""]),
            "allowed": st.integers(0, 2),
            "gone": st.sampled_from([(), ("n0-p0",)]),
        }
    ),
    max_size=2,
)
incoming = st.fixed_dictionaries(
    {
        "cpu": st.integers(1, 6),
        "gpu": st.integers(0, 2),
        "priority": st.integers(-1, 4),
        "labels": LABELS,
        "started": st.none(),
        "port": st.sampled_from([0, 80]),
        "apart": st.booleans(),
    }
)
nominees = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3)), max_size=2)


def _standing(name: str, told: dict[str, Any]) -> PodBuilder:
    pod = make_pod(name).req({"cpu": str(told["cpu"]), "example.com/gpu": str(told["gpu"])})
    pod.priority(told["priority"]).labels(told["labels"])
    if told["started"]:
        pod.started(told["started"])
    if told["port"]:
        pod.host_port(told["port"])
    if told["apart"]:
        pod.pod_anti_affinity("kubernetes.io/hostname", {"app": "b"})
    return pod


def _view(nodes: Any, protected: Any, coming: Any) -> ClusterView:
    view = ClusterView()
    for number, told in enumerate(nodes):
        name = f"n{number}"
        node = make_node(name).capacity({"cpu": "6", "memory": "8Gi", "pods": told["room"], "example.com/gpu": "2"})
        view.add_or_update_node(node.label("kubernetes.io/hostname", name).unschedulable(told["cordoned"]).build())
        for place, pod in enumerate(told["pods"]):
            view.add_or_update_pod(_standing(f"{name}-p{place}", pod).node(name).build())
    for number, told in enumerate(protected):
        selector = {"matchLabels": {"app": told["app"]} if told["app"] else {}}
        gone = dict.fromkeys(told["gone"], "2026-01-01T00:00:00Z")
        status = {"disruptionsAllowed": told["allowed"], "disruptedPods": gone}
        item = {"metadata": {"name": f"b{number}", "namespace": "default"}, "spec": {"selector": selector}}
        view.set_object("PodDisruptionBudget", decode(PodDisruptionBudget, item | {"status": status}))
    for number, (row, priority, cpu) in enumerate(coming):
        pod = make_pod(f"coming-{number}").req(cpu=str(cpu)).priority(priority).nominated(f"n{row}")
        view.add_or_update_pod(pod.build())
    return view


SUMS = compile_policy(
    """
policy "sums" {
  scheduler "default-scheduler"
  base kubernetes
  filter "company" when pod.priority < 4 {
    require node.podCount < 4 else "four are company"
    require node.used.cpu + pod.requests.cpu <= node.allocatable.cpu * 0.9 else "its cores are busy"
    require node.used[?"example.com/gpu"].orValue(0) < 2 else "its accelerators are busy"
  }
}
"""
)
"""Its rule reads of pods no more than sums."""


def _dry_run(view: ClusterView, uid: str, profile: Profile) -> tuple[list[Candidate], Candidate | None, str]:
    evaluator = Evaluator(profile)
    pod = view.pods[uid]
    diagnosis = evaluator.filter(pod, view.snapshot())
    plugin = DefaultPreemption()
    found, chosen = plugin.all_candidates(pod, diagnosis, evaluator, view)
    result = plugin.post_filter(pod, diagnosis, evaluator, view)
    assert (None if chosen is None else view.nodes.names[chosen.row]) == (result.nominated_node_name or None)
    return found, chosen, result.status.message


@settings(max_examples=150)
@given(cluster, budgets, incoming, nominees, st.sampled_from([default_profile(), SUMS]))
def test_all_at_once_is_one_by_one(nodes: Any, protected: Any, told: Any, coming: Any, profile: Profile) -> None:
    view = _view(nodes, protected, coming)
    view.add_or_update_pod(_standing("new", told).build())
    before = dump_view(view)
    at_once = _dry_run(view, "new", profile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dry_run, "known_filters", lambda asked: (known_filters(asked)[0][:0], False))
        one_by_one = _dry_run(view, "new", profile)
    assert at_once == one_by_one
    validate_view(view)
    assert dump_view(view) == before


def test_every_pod_on_a_row_is_found_and_rows_that_change_are_read_again() -> None:
    view = ClusterView()
    for name in ("a", "b"):
        view.add_or_update_node(make_node(name).capacity(cpu="4", pods="110").build())
    for number in range(12):
        view.add_or_update_pod(make_pod(f"p{number}").priority(number % 5).node("a").build())
    standing = placed_pods(view.nodes)
    assert standing.priority[0, :12].tolist() == sorted((number % 5 for number in range(12)), reverse=True)
    assert set(standing.priority[0, 12:].tolist()) == {NOBODY}
    view.remove_pod("p4")
    view.add_or_update_pod(make_pod("q").priority(9).node("b").deleting().build())
    standing = placed_pods(view.nodes)
    assert [len(pods) for pods in standing.pods] == [11, 1]
    assert (standing.priority[1, 0], [pod.name for pod in standing.leaving[1]]) == (9, ["q"])
    view.remove_node("a")
    assert [pod.name for pod in placed_pods(view.nodes).pods[0]] == ["q"]
    assert list(placed_pods(view.nodes).leaving) == [0]


def _candidate(row: int, *victims: tuple[int, str | None], violations: int = 0) -> Candidate:
    pods = []
    for priority, started in victims:
        pod = make_pod("v").priority(priority)
        pods.append((pod.started(started) if started else pod).info())
    return Candidate(row, tuple(pods), violations)


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (_candidate(0, (9, EARLY)), _candidate(1, (1, LATE), violations=1)),
        (_candidate(0, (1, EARLY), (1, EARLY)), _candidate(1, (2, LATE))),
        (_candidate(0, (2, EARLY), (-5, EARLY)), _candidate(1, (2, LATE), (1, LATE))),
        (_candidate(0, (-5, EARLY)), _candidate(1, (-5, LATE), (-6, LATE))),
        (_candidate(0, (1, LATE)), _candidate(1, (1, EARLY))),
        (_candidate(0, (1, None)), _candidate(1, (1, LATE))),
        (_candidate(0, (2, LATE), (1, EARLY)), _candidate(1, (2, EARLY), (1, LATE))),
    ],
    ids=["budgets", "highest", "sum", "negative sums", "start", "not started", "start of the highest only"],
)
def test_the_node_is_picked_by_one_rule_after_another(better: Candidate, worse: Candidate) -> None:
    assert ranks_of([worse, better]).best().tolist() == [1]
    assert ranks_of([better, worse, better]).best().tolist() == [0, 2]


def test_what_set_the_best_apart_is_told() -> None:
    low, high = _candidate(0, (1, LATE)), _candidate(1, (2, LATE))
    assert ranks_of([low]).why() == "the only node that could be cleared"
    most = "the lowest priority of the most important victim"
    assert ranks_of([high, low]).why() == f"of 2 nodes that could be cleared 1 is left by {most}"
    assert ranks_of([low, low]).why() == "of 2 nodes that could be cleared 1 is left by the hash of the pod's UID"
    broken = _candidate(2, (1, LATE), violations=1)
    assert ranks_of([low, broken, high, low]).why() == (
        "of 4 nodes that could be cleared 3 are left by the fewest violated disruption budgets, "
        f"2 by {most}, 1 by the hash of the pod's UID"
    )


def test_equals_are_told_apart_by_the_ring_alone() -> None:
    view = ClusterView()
    for name in ("a", "b", "c", "d"):
        view.add_or_update_node(make_node(name).capacity(cpu="1", pods="110").build())
        view.add_or_update_pod(make_pod(f"on-{name}").req(cpu="1").node(name).build())
    for uid in ("x", "y", "z"):
        view.add_or_update_pod(make_pod(uid).req(cpu="1").priority(1).build())
        _, chosen, _ = _dry_run(view, uid, default_profile())
        distances = view.nodes.name_hash - np.uint64(stable_hash(uid))
        assert chosen is not None
        assert chosen.row == int(np.argmin(distances))


def test_an_unresolvable_nominated_node_makes_a_pod_eligible_again() -> None:
    view = ClusterView()
    view.add_or_update_node(make_node("a").capacity(cpu="1", pods="110").unschedulable().build())
    going = make_pod("low").req(cpu="1").node("a").deleting("2100-01-01T00:00:00Z")
    view.add_or_update_pod(going.condition("DisruptionTarget", "True", "PreemptionByScheduler").build())
    view.add_or_update_pod(make_pod("new").req(cpu="1").priority(1).nominated("a").build())
    evaluator = Evaluator(default_profile())
    diagnosis = evaluator.filter(view.pods["new"], view.snapshot())
    assert diagnosis.refusal(0).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert DefaultPreemption().why_not_eligible(view.pods["new"], diagnosis, evaluator, view) == ""


COMPANY = """policy "two" {
  scheduler "default-scheduler"
  base kubernetes
  filter "company" { require node.podCount < 2 else "two is company" }
}
"""


def test_the_rules_of_a_policy_are_asked_again_without_the_victims() -> None:
    view = ClusterView()
    view.add_or_update_node(make_node("n").capacity(cpu="64", memory="64Gi", pods="110").build())
    for name, priority in (("x", 1), ("y", 2), ("z", 0)):
        view.add_or_update_pod(make_pod(name).req(cpu="1").priority(priority).node("n").build())
    view.add_or_update_pod(make_pod("new").req(cpu="1").priority(9).build())
    evaluator = Evaluator(compile_policy(COMPANY))
    plugin = evaluator.profile.post_filters[-1]
    diagnosis = evaluator.filter(view.pods["new"], view.snapshot())
    assert diagnosis.message() == "0/1 nodes are available: 1 two is company."
    assert isinstance(plugin, DefaultPreemption)
    result = plugin.post_filter(view.pods["new"], diagnosis, evaluator, view)
    assert (result.nominated_node_name, [victim.name for victim in result.victims]) == ("n", ["x", "z"])


def test_a_rule_speaks_of_the_node_without_the_victims_and_for_all_nodes_by_the_first() -> None:
    text = COMPANY.replace("node.podCount < 2", "node.free.cpu > 2").replace("two is company", "{node.used.cpu} used")
    view = ClusterView()
    for name, stays in (("b", "3"), ("a", "4")):
        view.add_or_update_node(make_node(name).capacity(cpu="5", memory="64Gi", pods="110").build())
        view.add_or_update_pod(make_pod(f"stays-{name}").req(cpu=stays).priority(9).node(name).build())
        view.add_or_update_pod(make_pod(f"low-{name}").req(cpu="1").node(name).build())
    view.add_or_update_pod(make_pod("new").priority(1).build())
    evaluator = Evaluator(compile_policy(text))
    diagnosis = evaluator.filter(view.pods["new"], view.snapshot())
    plugin = evaluator.profile.post_filters[-1]
    assert isinstance(plugin, DefaultPreemption)
    told = plugin.post_filter(view.pods["new"], diagnosis, evaluator, view).status.message
    assert told == "preemption: 0/2 nodes are available: 2 4 used (a)."
    assert diagnosis.message() == "0/2 nodes are available: 2 5 used (a)."
