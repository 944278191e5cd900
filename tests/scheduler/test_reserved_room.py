"""`waits`: room is kept for a gang while it drains, and only what does not delay it passes."""

from __future__ import annotations

import pytest

from policyengine.scheduler.messages import Message, NodeDeleted, PodDeleted, ProfileReplaced
from tests.builders import PodBuilder
from tests.scheduler.driver import START, Driver, Label, binds, node, notes, pod, profile


def member(name: str, gang: str = "g", cpu: str = "2", waits: str = "600") -> PodBuilder:
    return pod(name, cpu).labels({"gang": gang, "min": "2", "waits": waits})


def full() -> Driver:
    """Two nodes of two CPUs, each half taken; the gang needs both whole."""
    driver = Driver(profile(gangs=(Label(),))).showing(node("n1", cpu="2"), node("n2", cpu="2"))
    driver.see(pod("there-1").node("n1"), pod("there-2").node("n2"))
    driver.see(member("a"), member("b"))
    assert binds(driver.cycle()) == {}
    return driver


def gone(driver: Driver, name: str) -> None:
    driver.send(PodDeleted("default", name, name))


def test_nobody_takes_the_room_that_a_waiting_gang_drains():
    driver = full().showing(pod("late"))
    actions = driver.cycle()
    assert binds(actions) == {}
    assert "2 node(s) had room kept for gang pod-group" in notes(actions)[0][1]
    gone(driver, "there-1")
    driver.wait(3.0)
    assert binds(driver.cycle()) == {}
    gone(driver, "there-2")
    driver.wait(3.0)
    assert sorted(binds(driver.cycle())) == ["a", "b"]


def test_a_gang_that_does_not_say_how_long_it_waits_keeps_no_room():
    driver = Driver(profile(gangs=(Label(),))).showing(node("n1", cpu="2"), pod("there").node("n1"))
    driver.see(*(pod(name, "1").labels({"gang": "g", "min": "2"}) for name in "ab"))
    driver.see(pod("late"))
    assert binds(driver.cycle()) == {"late": "n1"}


def test_a_gang_that_fits_on_no_cluster_keeps_no_room():
    driver = Driver(profile(gangs=(Label(),))).showing(node("n1", cpu="2"), member("a"), member("b"), pod("late"))
    assert binds(driver.cycle()) == {"late": "n1"}


def test_a_pod_that_ends_in_time_passes_and_one_that_may_not_does_not():
    driver = full()
    driver.see(pod("short").set("spec.activeDeadlineSeconds", 500), pod("long").set("spec.activeDeadlineSeconds", 580))
    assert list(binds(driver.cycle())) == ["short"]


def test_when_the_wait_is_over_nothing_passes_by_its_end():
    driver = full()
    driver.wait(590.0)
    driver.see(pod("short").set("spec.activeDeadlineSeconds", 10))
    assert binds(driver.cycle()) == {}


def test_a_pod_that_fits_beside_the_gang_passes():
    driver = full().showing(node("n3", cpu="1"))
    driver.see(pod("late"))
    assert binds(driver.cycle()) == {"late": "n3"}


def test_a_more_important_pod_passes_and_an_equal_one_does_not():
    driver = full().showing(pod("equal").priority(0), pod("urgent").priority(5))
    assert list(binds(driver.cycle())) == ["urgent"]


@pytest.mark.parametrize(
    "message",
    [PodDeleted("default", "a", "a"), ProfileReplaced(profile(policy_hash="new"))],
    ids=["the gang has too few members", "the policy has no such gang any more"],
)
def test_room_is_given_up_when(message: Message):
    driver = full().showing(pod("late"))
    assert binds(driver.cycle()) == {}
    driver.send(message)
    driver.wait(3.0)
    assert "late" in binds(driver.cycle())


def test_other_nodes_are_chosen_when_one_goes():
    driver = full().showing(node("n3", cpu="2"), pod("there-3").node("n3"))
    driver.send(NodeDeleted("n1"))
    driver.wait(400.0)
    driver.cycle()
    driver.see(pod("late"))
    assert binds(driver.cycle()) == {}
    gone(driver, "there-2")
    gone(driver, "there-3")
    driver.wait(20.0)
    assert binds(driver.cycle()).keys() == {"a", "b"}


def test_two_waiting_gangs_keep_room_one_after_the_other():
    driver = full().showing(member("c", "h"), member("d", "h"))
    assert binds(driver.cycle()) == {}
    gone(driver, "there-1")
    gone(driver, "there-2")
    driver.wait(3.0)
    first = binds(driver.cycle())
    assert sorted(first) == ["a", "b"]
    for name in "ab":
        gone(driver, name)
    driver.wait(20.0)
    assert sorted(binds(driver.cycle())) == ["c", "d"]


def test_a_stream_of_small_pods_does_not_starve_a_gang_that_waits():
    driver = full()
    for turn in range(20):
        driver.see(pod(f"small-{turn}"))
        driver.cycle()
        if turn == 3:
            gone(driver, "there-1")
        if turn == 9:
            gone(driver, "there-2")
        driver.wait(5.0)
        if driver.places("a", "b") == ["binding", "binding"]:
            break
    assert driver.now - START < 60.0
