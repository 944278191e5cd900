"""Policies come, change and go; several serve side by side."""

from dataclasses import replace

from policyengine.framework.status import Code
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    CyclesRequested,
    ProfileRemoved,
    ProfileReplaced,
)
from tests.scheduler.driver import NAME, Driver, Label, Rule, binds, node, notes, pod, profile


def serving(name, share=1, **changes):
    return profile(name=name, scheduler_name=name, share=share, policy_hash=f"hash of {name}", **changes)


def test_a_policy_takes_over_the_pods_that_wait_for_its_name():
    driver = Driver().showing(node("n1"), pod("p").scheduler("late"))
    assert driver.cycle() == []
    driver.send(ProfileReplaced(serving("late")))
    assert driver.state.ready
    assert binds(driver.cycle()) == {"p": "n1"}


def test_pods_of_a_removed_policy_wait_and_are_not_lost():
    driver = Driver().showing(node("n1"), pod("p"))
    driver.send(ProfileRemoved(NAME))
    driver.send(ProfileRemoved(NAME))
    driver.send(ProfileRemoved("never-served"))
    assert driver.cycle() == []
    assert not driver.state.ready
    assert driver.places("p") == ["unserved"]
    driver.see(pod("q"))
    driver.send(ProfileReplaced(profile()))
    assert set(binds(driver.cycle())) == {"p", "q"}


def test_a_binding_under_way_keeps_the_hash_of_its_decision():
    driver = Driver(profile(policy_hash="old")).showing(node("n1"), pod("p"), pod("q"))
    (first,) = driver.send(CyclesRequested(1))
    driver.send(ProfileReplaced(profile(policy_hash="new")))
    (second,) = driver.send(CyclesRequested(1))
    assert [action.policy_hash for action in (first, second) if isinstance(action, Bind)] == ["old", "new"]
    driver.send(BindSucceeded(first.uid))
    bound = driver.state.timeline(first.uid)[-1]
    assert (bound.what, bound.details["policy hash"]) == ("bound", "old")


def test_a_binding_that_fails_after_its_policy_was_removed_is_not_lost():
    driver = Driver().showing(node("n1"), pod("p"))
    driver.cycle()
    driver.send(ProfileRemoved(NAME))
    driver.send(BindFailed("p", BindFailure.REFUSED, "no"))
    assert driver.places("p") == ["unserved"]
    driver.send(ProfileReplaced(profile()))
    driver.until_wakeup()
    assert binds(driver.cycle()) == {"p": "n1"}


def test_a_new_version_without_the_refusing_rule_lets_its_pods_go():
    never = Rule("never", lambda pod, node: Code.UNSCHEDULABLE, fingerprint="1")
    strict = profile(filters=(*profile().filters, never))
    driver = Driver(strict).showing(node("n1"), pod("p"), pod("big", cpu="100"))
    assert len(notes(driver.cycle())) == 2
    driver.now += 20.0
    driver.send(ProfileReplaced(replace(strict, policy_hash="same rules")))
    assert driver.places("p", "big") == ["unschedulable", "unschedulable"]
    driver.send(ProfileReplaced(replace(strict, filters=strict.filters[:-1], policy_hash="fewer rules")))
    assert driver.places("p", "big") == ["active", "unschedulable"]
    assert binds(driver.cycle()) == {"p": "n1"}


def test_a_new_gang_rule_holds_and_its_end_releases():
    driver = Driver()
    member = pod("p").labels({"gang": "g", "min": "2"})
    driver.see(node("n1"), member)
    told = driver.send(ProfileReplaced(profile(gangs=(Label(),))))
    assert notes(told) == [("FailedScheduling", "gang pod-group: 1 of 2 members exist")]
    assert driver.places("p") == ["held"]
    driver.send(ProfileReplaced(profile()))
    assert driver.places("p") == ["active"]


def test_a_bound_member_counts_for_its_gang_after_a_reload():
    driver = Driver()
    bound, waiting = pod("a").labels({"gang": "g", "min": "2"}), pod("b").labels({"gang": "g", "min": "2"})
    driver.see(node("n1"), bound.node("n1"), waiting)
    driver.send(ProfileReplaced(profile(gangs=(Label(),))))
    assert driver.places("b") == ["active"]


def test_queues_are_served_in_proportion_to_their_share():
    driver = Driver(serving("often", share=3), serving("seldom", share=1)).showing(node("n1", cpu="100", pods="100"))
    for name in ("often", "seldom"):
        driver.see(*[pod(f"{name}-{number}", cpu="100m").scheduler(name) for number in range(12)])
    turns = [action.uid.split("-")[0] for action in driver.cycle(16)]
    assert turns == ["often", "often", "seldom", "often"] * 4
    rest = [action.uid.split("-")[0] for action in driver.cycle()]
    assert rest == ["seldom"] * 8


def test_a_queue_with_only_backing_off_pods_waits_for_those_with_active_ones():
    driver = Driver(serving("busy"), serving("waiting"))
    driver.see(node("n1", cpu="4"), pod("big", cpu="100").scheduler("waiting"))
    driver.cycle()
    running = pod("running", cpu="1").node("n1")
    driver.see(running, *[pod(f"p{number}", cpu="1").scheduler("busy") for number in range(3)])
    driver.see(pod("big", cpu="100").scheduler("waiting").toleration("a", "Exists"))
    driver.see(running.phase("Failed"))
    actions = driver.cycle(3)
    assert set(binds(actions)) == {"p0", "p1", "p2"}
