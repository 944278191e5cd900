"""faults.md, 15 and 18: the node changes between the decision and its binding's outcome."""

import pytest

from policyengine.scheduler.messages import BindFailed, BindFailure, BindSucceeded, BindUnknown, NodeDeleted
from tests.scheduler.driver import Driver, Rule, binds, node, notes, pod, profile, reads


@pytest.fixture
def driver():
    driver = Driver().showing(node("n1", cpu="2"), pod("p", cpu="2"))
    assert binds(driver.cycle()) == {"p": "n1"}
    assert driver.state.may_bind("p")
    return driver


WORSE = {
    "cordoned": lambda: node("n1", cpu="2").unschedulable(),
    "tainted": lambda: node("n1", cpu="2").taint("broken"),
    "shrunk": lambda: node("n1", cpu="1"),
}


@pytest.mark.parametrize("change", WORSE)
def test_a_decision_for_a_node_that_became_worse_is_withdrawn(driver, change):
    driver.see(WORSE[change]())
    assert not driver.state.may_bind("p")
    driver.see(node("n2", cpu="2"))
    assert driver.send(BindFailed("p", BindFailure.WITHDRAWN, "not posted")) == []
    assert driver.places("p") == ["active"]
    assert binds(driver.cycle()) == {"p": "n2"}


def test_a_decision_for_a_node_that_is_gone_is_withdrawn(driver):
    driver.send(NodeDeleted("n1"))
    assert not driver.state.may_bind("p")
    driver.send(BindFailed("p", BindFailure.WITHDRAWN, "not posted"))
    assert notes(driver.cycle()) == [("FailedScheduling", "no nodes available to schedule pods")]


def test_a_binding_that_was_posted_before_it_was_withdrawn_stands(driver):
    driver.see(WORSE["cordoned"]())
    assert notes(driver.send(BindSucceeded("p"))) == [("Scheduled", "Successfully assigned default/p to n1")]
    driver.see(pod("p", cpu="2").node("n1"))
    assert driver.places("p") == ["bound"]


@pytest.mark.parametrize("change", ["label", "condition"])
def test_a_change_that_does_not_matter_withdraws_nothing(driver, change):
    better = {"label": node("n1", cpu="2").label("a", "b"), "condition": node("n1", cpu="2").ready()}[change]
    driver.see(better)
    assert driver.state.may_bind("p")


def test_a_pod_somebody_else_bound_there_withdraws_the_decision_it_leaves_no_room_for(driver):
    driver.see(pod("foreign", cpu="1").scheduler("someone-else").node("n1"))
    assert not driver.state.may_bind("p")


def test_a_pod_that_grows_on_the_node_withdraws_the_decision_it_leaves_no_room_for():
    driver = Driver().showing(node("n1", cpu="4"), pod("stands", cpu="1").node("n1"), pod("p", cpu="2"))
    driver.cycle()
    driver.see(pod("stands", cpu="2").node("n1"))
    assert driver.state.may_bind("p")
    driver.see(pod("stands", cpu="3").node("n1"))
    assert not driver.state.may_bind("p")


def test_a_decision_about_a_pod_that_has_grown_meanwhile_is_withdrawn(driver):
    driver.see(pod("p", cpu="3"), node("n2", cpu="3"))
    assert not driver.state.may_bind("p")
    driver.send(BindFailed("p", BindFailure.WITHDRAWN, "not posted"))
    assert binds(driver.cycle()) == {"p": "n2"}


def test_only_as_many_decisions_are_withdrawn_as_have_no_room_the_newest_first():
    driver = Driver().showing(node("n1", cpu="4"), *[pod(name, cpu="1") for name in "abcd"])
    assert len(binds(driver.cycle())) == 4
    driver.see(pod("foreign", cpu="1").node("n1"))
    assert [driver.state.may_bind(name) for name in "abcd"] == [True, True, True, False]


def test_a_binding_that_was_sent_counts_where_others_are_asked_about():
    driver = Driver().showing(node("n1", cpu="2"), pod("early", cpu="1"), pod("late", cpu="1"))
    driver.cycle()
    assert driver.state.may_bind("late")
    driver.see(node("n1", cpu="1"))
    assert not driver.state.may_bind("early")
    assert driver.state.may_bind("late")


def test_two_bindings_that_were_sent_are_not_posted_again_where_both_have_no_room():
    driver = Driver().showing(node("n1", cpu="2"), pod("a", cpu="1"), pod("b", cpu="1"))
    driver.cycle()
    assert all(driver.state.may_bind(name) for name in "ab")
    driver.see(node("n1", cpu="1"))
    assert not any(driver.state.may_bind(name) for name in "ab")


def test_a_withdrawn_decision_of_unknown_outcome_keeps_its_room_until_no_request_can_land(driver):
    driver.send(BindUnknown("p", "timed out"))
    driver.see(WORSE["tainted"]())
    start = driver.now
    while driver.places("p") == ["binding"]:
        assert int(driver.state.view.nodes.requested("cpu")[0]) == 2000
        assert binds(driver.read(pod("p", cpu="2").label("seen", "unassigned"))) == {}
        if driver.places("p") == ["binding"]:
            assert reads(driver.until_wakeup()) == ["p"]
    assert 66.0 <= driver.now - start <= 77.0
    assert driver.places("p") == ["active"]
    assert int(driver.state.view.nodes.requested("cpu")[0]) == 0


def test_a_withdrawn_decision_of_unknown_outcome_keeps_its_room_whatever_a_watch_shows(driver):
    """Who stands still, or is shown old news, knows nothing by the time that passed."""
    driver.send(BindUnknown("p", "timed out"))
    driver.see(WORSE["tainted"]())
    driver.now += 1000.0
    driver.see(pod("p", cpu="2").label("seen", "by a watch"))
    driver.read(pod("p", cpu="2").label("seen", "by a read that was asked for when it could still land"))
    assert (driver.places("p"), int(driver.state.view.nodes.requested("cpu")[0])) == (["binding"], 2000)
    driver.until_wakeup()
    driver.read(pod("p", cpu="2").label("seen", "by a read that is no older"))
    assert (driver.places("p"), int(driver.state.view.nodes.requested("cpu")[0])) == (["active"], 0)


def test_a_filter_that_fails_by_now_leaves_the_decision_and_its_pod_is_told():
    is_broken = False

    def says(pod, node):
        if is_broken:
            raise RuntimeError("the rule has a bug")

    driver = Driver(profile(filters=(Rule("odd", says),))).showing(node("n1"), pod("p"))
    driver.cycle()
    is_broken = True
    driver.see(node("n1").label("a", "b"))
    assert driver.state.may_bind("p")
    assert str(driver.state.timeline("p")[-1]) == "not revalidated: node n1, message the rule has a bug"


def test_a_pod_that_has_arrived_is_not_asked_about_again(driver):
    """The API server labels a pod with its node's zone as it binds it (admission plugin PodTopologyLabels, v1.36), so
    that every pod of ours comes with other labels."""
    asked = [used[-2] for used in driver.state.usage()]
    driver.see(pod("p", cpu="2").node("n1").label("topology.kubernetes.io/zone", "z"))
    assert [used[-2] for used in driver.state.usage()] == asked
    assert notes(driver.send(BindSucceeded("p"))) == [("Scheduled", "Successfully assigned default/p to n1")]


def test_nobody_may_bind_what_was_not_decided():
    assert not Driver().state.may_bind("x")
