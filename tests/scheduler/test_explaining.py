"""`policyengine.explain`, as a script uses it."""

import pytest

import policyengine
from tests.builders import make_node, make_pod

CLUSTER = {
    "nodes": [make_node(name).capacity(cpu="4", memory="8Gi", pods="10").json() for name in ("a", "b")],
    "pending": [make_pod("p").req(cpu="1").json()],
}


def test_without_a_policy_the_in_tree_plugins_answer() -> None:
    [entry] = policyengine.explain(CLUSTER)
    assert entry["pod"] == "default/p" and set(entry["total"]) == {"a", "b"}


def test_a_policy_answers_for_itself() -> None:
    [entry] = policyengine.explain(CLUSTER, 'policy "x" { filter "not-a" { require node.name != "a" } }')
    assert entry["rejected"]["a"]["plugin"] == "not-a" and entry["chosen"] == "b"


def test_a_broken_policy_is_told_with_its_place() -> None:
    with pytest.raises(policyengine.PolicyError, match="PE1002"):
        policyengine.explain(CLUSTER, 'policy "x" { filter "f" { require node.nane == "a" } }')
