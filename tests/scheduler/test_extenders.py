"""A pod whose extenders are asked stays in flight; their answer is held against what is true when it comes."""

from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.extender import Extender
from policyengine.scheduler.messages import (
    NodeDeleted,
    PodDeleted,
    ProfileRemoved,
    ProfileReplaced,
)
from tests.scheduler.asking import Asking
from tests.scheduler.driver import NAME, binds, conditions, node, pod, profile

EVERYBODY = Extender("http://x")
GPU = Extender("http://gpu", frozenset({"x.io/gpu"}))


def asked_about(*names: str, extender: Extender = EVERYBODY) -> Asking:
    """Two nodes, and a question about each of the pods."""
    driver = Asking(extender)
    driver.see(node("n1"), node("n2"), *(pod(name) for name in names))
    assert not binds(driver.cycle())
    return driver


def test_a_pod_is_in_flight_until_the_extenders_have_answered() -> None:
    driver = asked_about("p")
    assert driver.places("p") == ["in flight"]
    assert sorted(driver.asked[0].nodes) == ["n1", "n2"]
    assert list(binds(driver.answer())) == ["p"]
    assert driver.places("p") == ["binding"]


def test_a_pod_in_which_no_extender_is_interested_is_placed_at_once() -> None:
    driver = Asking(GPU)
    driver.see(node("n1"), node("n2"), pod("p"))
    assert list(binds(driver.cycle())) == ["p"]
    assert driver.asked == []


def test_a_refused_node_is_not_taken_and_the_reason_is_told() -> None:
    driver = asked_about("p")
    assert binds(driver.answer(refused={"n1": ("http://x", "not today")})) == {"p": "n2"}
    driver.see(pod("q"))
    driver.cycle()
    both = dict.fromkeys(("n1", "n2"), ("http://x", "not today"))
    assert conditions(driver.answer(refused=both))[0][1].startswith("0/2 nodes are available: 2 not today")


def test_a_pod_that_an_extender_refused_moves_by_any_event() -> None:
    driver = asked_about("p")
    driver.answer(unresolvable=dict.fromkeys(("n1", "n2"), ("http://x", "no")))
    assert driver.places("p") == ["unschedulable"]
    driver.see(node("n1").label("any", "thing"))
    assert driver.places("p") == ["backoff"]


def test_scores_are_added() -> None:
    for best in ("n1", "n2"):
        assert binds(asked_about("p").answer(scores={best: 1000})) == {"p": best}


def test_an_extender_chooses_among_the_nodes_of_the_best_tier_and_outweighs_no_tier() -> None:
    tier = 'scheduler "default-scheduler" score "first" tier = node.name == "n2" ? 1 : 0'
    driver = Asking(EVERYBODY, profiles=(compile_policy(f'policy "p" {{ {tier} }}'),))
    driver.see(node("n1"), node("n2"), pod("p"))
    driver.cycle()
    assert binds(driver.answer(scores={"n1": 100_000_000})) == {"p": "n2"}


def test_an_error_is_an_error_of_the_attempt() -> None:
    driver = asked_about("p")
    assert conditions(driver.answer(error="it is down")) == [("SchedulerError", "it is down")]
    assert driver.places("p") == ["backoff"]


def test_a_node_that_is_full_or_gone_by_then_is_not_taken() -> None:
    driver = asked_about("p").showing(pod("other", cpu="4").node("n1"))
    driver.send(NodeDeleted("n2"))
    assert not binds(driver.answer())
    assert driver.places("p") == ["unschedulable"]


def test_a_node_that_came_since_is_not_taken_unseen() -> None:
    driver = asked_about("p")
    for name in ("n1", "n2"):
        driver.send(NodeDeleted(name))
    driver.see(node("n3"))
    assert not binds(driver.answer())
    assert any("came to fit after" in str(line) for line in driver.state.timeline("p"))
    driver.wait(10)
    driver.cycle()
    assert binds(driver.answer()) == {"p": "n3"}


def test_two_pods_let_onto_one_node_do_not_both_go_there() -> None:
    driver = Asking(EVERYBODY)
    driver.see(node("n1"), pod("a", cpu="3"), pod("b", cpu="3"))
    driver.cycle()
    assert len(driver.asked) == 2
    assert len(binds(driver.answer() + driver.answer())) == 1


def test_the_answer_for_a_pod_that_is_gone_or_bound_changes_nothing() -> None:
    driver = asked_about("gone", "bound")
    driver.send(PodDeleted("default", "gone", "gone"))
    driver.see(pod("bound").node("n1"))
    assert not binds(driver.answer() + driver.answer())
    assert driver.state._core.consulted == {}


def test_under_another_policy_the_extenders_are_asked_anew() -> None:
    driver = asked_about("p")
    driver.send(ProfileReplaced(profile(policy_hash="another")))
    assert not binds(driver.answer())
    assert len(driver.asked) == 1
    (bind,) = [action for action in driver.answer() if hasattr(action, "policy_hash") and hasattr(action, "extender")]
    assert bind.policy_hash == "another"


def test_without_a_policy_the_pod_waits_for_one() -> None:
    driver = asked_about("p")
    driver.send(ProfileRemoved(NAME))
    assert not binds(driver.answer())
    driver.send(ProfileReplaced(profile(policy_hash="another")))
    driver.wait(60)
    driver.cycle()
    assert list(binds(driver.answer())) == ["p"]
