"""Pods that are alike, or differ in their requests alone, go where an evaluator that has seen nothing else would send
them, whatever others do between them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.evaluator import Evaluator
from policyengine.framework.profile import Profile
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from tests.framework.placing import TEMPLATES, Placing

SEEDS = st.integers(0, 2**32)
RULES = {
    "what all pods of a template have in common, and what they need not": """
  filter "kept" { require node.labels[?"disk"].orValue("") != "ssd" || pod.labels[?"app"].orValue("") == "mine" }
  filter "noted" when "only" in pod.annotations { require node.name == pod.annotations[?"only"].orValue("") }
  filter "room" { require node.free.cpu - pod.requests.cpu >= 100m else "only {node.free.cpu} left" }
  score "empty" weight 2 = 100 * ratio(node.free.cpu - pod.requests.cpu, node.allocatable.cpu)""",
    "requests beside what pods on a node change, beside what they do not, and neither": """
  filter "room" { require node.free.cpu - pod.requests.cpu >= 100m else "only {node.free.cpu} left" }
  filter "large" when pod.requests.memory > 1Gi { require node.allocatable.memory > 2 * pod.requests.memory }
  filter "disk" { require pod.annotations[?"disk"].orValue("") == "" || node.labels[?"disk"].orValue("") == "ssd" }
  score "close" weight 2 = 100 * ratio(pod.requests.cpu, node.free.cpu)
  score "spare" weight 1 normalize minmax = ratio(node.allocatable.memory, 8Gi)""",
    "all feasible nodes, and domains": """
  filter "zone has room" { require node.domain("topology.kubernetes.io/zone").pods.size() < 40 }
  score "least used" weight 2 normalize minmax = ratio(node.free.cpu, node.allocatable.cpu)
  score "few in the zone" weight 3 normalize max reverse =
    node.domain("topology.kubernetes.io/zone").pods.filter(p, p.labels[?"app"].orValue("") == "mine").size()""",
}
"""Policies, by what their rules read."""


def run(seed: int, profile: Profile) -> None:
    """Two runs of pods of one template each; between two pods mostly nothing happens."""
    cluster = Placing(Random(seed), profile)
    for turn in range(2):
        template = cluster.rng.choice(list(TEMPLATES.values()))
        for number in range(14):
            cluster.place(f"pod-{turn}-{number}", template)
            while cluster.rng.random() < 0.25:
                cluster.disturb(template)


@settings(max_examples=20)
@given(seed=SEEDS)
def test_a_pod_like_the_one_before_goes_where_a_fresh_evaluator_sends_it(seed: int) -> None:
    run(seed, default_profile())


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@settings(max_examples=8)
@given(seed=SEEDS)
def test_so_it_does_by_the_rules_of_a_policy(rules: str, seed: int) -> None:
    run(seed, compile_policy(f'policy "rules" {{{rules}\n}}'))


@settings(max_examples=8)
@given(seed=SEEDS, columns=st.sampled_from((1, 2, 128)))
def test_so_do_interleaved_kinds_of_pods_whatever_is_evicted_and_whoever_else_asks(seed: int, columns: int) -> None:
    """Kinds share some columns, few of which are kept; now and then the evaluator is asked about another cluster."""
    cluster, other = (Placing(Random(seed + number), default_profile()) for number in range(2))
    cluster.evaluator = Evaluator(cluster.profile, columns)
    other.set_pod("elsewhere", {})
    kinds = cluster.rng.sample(list(TEMPLATES.values()), 3)
    for number in range(30):
        cluster.place(f"pod-{number}", cluster.rng.choice(kinds))
        if cluster.rng.random() < 0.05:
            cluster.evaluator.select_node(other.view.pods["elsewhere"], other.view.snapshot())
        while cluster.rng.random() < 0.25:
            cluster.disturb(cluster.rng.choice(kinds))


@pytest.mark.parametrize("name", [name for name in TEMPLATES if "zone" in name])
def test_domains_that_fill_up_no_longer_count(name: str) -> None:
    for seed, calm in ((2, True), (3, False)):
        cluster = Placing(Random(seed), default_profile(), room=1)
        for number in range(36):
            cluster.place(f"pod-{number}", TEMPLATES[name])
            while not calm and cluster.rng.random() < 0.2:
                cluster.disturb(TEMPLATES[name])


def test_a_series_begins_again_when_all_of_it_is_gone() -> None:
    cluster = Placing(Random(4), default_profile(), room=8)
    for number in range(4):
        cluster.place(f"pod-{number}", TEMPLATES["zone affinity"])
    for number in range(4):
        cluster.view.remove_pod(f"pod-{number}")
    cluster.place("first", TEMPLATES["zone affinity"])
    assert cluster.decided == 5


def test_what_a_service_says_is_heard_between_identical_pods() -> None:
    cluster = Placing(Random(4), default_profile(), room=8)
    for number in range(8):
        if number == 6:
            cluster.view.remove_object("Service", "default/mine")
        cluster.place(f"pod-{number}", {})
    assert cluster.decided == 8
