"""`permit "name" [when e] { delay until timeout }`, and what is written with a binding."""

from __future__ import annotations

import pytest

from policyengine.scheduler.actions import Bind, Log
from policyengine.scheduler.messages import BindSucceeded
from tests.scheduler.driver import Driver, binds, node, notes, pod
from tests.scheduler.policy_members import driven, lines, policy


def held(members: str) -> Driver:
    driver = driven(members).showing(node("n1"), pod("p"))
    assert binds(driver.cycle()) == {}
    assert driver.places("p") == ["waiting at permit"]
    return driver


def test_a_delayed_pod_is_bound_when_the_delay_is_over_and_no_sooner() -> None:
    driver = held('permit "slow" { delay: 5s }')
    assert driver.state.next_wakeup() == driver.now + 5
    assert binds(driver.wait(4.9)) == {}
    assert binds(driver.wait(0.1)) == {"p": "n1"}


def test_a_delay_is_over_where_what_is_left_of_it_is_finer_than_the_clock() -> None:
    driver = driven('permit "slow" { delay: 100ms }').showing(node("n1"), pod("p"))
    driver.now = 1_800_000_007.0
    driver.cycle()
    assert binds(driver.until_wakeup()) == {"p": "n1"}


def test_a_delay_may_follow_from_the_chosen_node() -> None:
    driver = driven('permit "numbered" { delay: trailingInt(node.name).orValue(0) * 1s }').showing(node("n7"), pod("p"))
    driver.cycle()
    assert binds(driver.wait(6.0)) == {}
    assert binds(driver.wait(1.0)) == {"p": "n7"}


def test_the_longest_of_several_delays_counts() -> None:
    driver = held('permit "a" { delay: 2s }\npermit "b" { delay: 6s }')
    assert binds(driver.until_wakeup()) == {}
    assert binds(driver.until_wakeup()) == {"p": "n1"}
    assert driver.now == 1006.0


def test_a_pod_that_the_rule_does_not_apply_to_is_bound_at_once() -> None:
    driver = driven('permit "slow" when pod.priority > 0 { delay: 5s }').showing(node("n1"), pod("p"))
    assert binds(driver.cycle()) == {"p": "n1"}


def test_a_when_without_a_value_counts_as_true() -> None:
    held('permit "slow" when 1 / pod.priority > 0 { delay: 5s }')


def test_until_is_asked_again_when_what_it_reads_changes() -> None:
    driver = held('permit "open" { until: "open" in node.labels  timeout: 10min }')
    assert binds(driver.see(node("n1").annotation("x", "y"))) == {}
    assert binds(driver.wait(60.0)) == {}
    driver.see(node("n1").label("open", "yes"))
    assert binds(driver.until_wakeup()) == {"p": "n1"}


def test_until_is_asked_again_each_minute_where_it_reads_the_time() -> None:
    driver = held('permit "later" { until: now >= timestamp("1970-01-01T00:18:20Z") }')  # second 1100
    assert driver.state.next_wakeup() == 1020.0
    assert binds(driver.until_wakeup()) == {}
    assert binds(driver.until_wakeup()) == {}
    assert driver.now == 1080.0
    assert binds(driver.until_wakeup()) == {"p": "n1"}
    assert driver.now == 1140.0


def test_at_its_timeout_a_pod_is_refused_by_the_rule() -> None:
    driver = held('permit "open" { until: "open" in node.labels  timeout: 10s }')
    actions = driver.until_wakeup()
    reason = "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin open."
    assert (driver.now, notes(actions)) == (1010.0, [("FailedScheduling", reason)])
    assert driver.places("p") == ["unschedulable"]


def test_no_pod_waits_longer_than_kube_scheduler_lets_it() -> None:
    driver = held('permit "open" { until: "open" in node.labels }')
    driver.until_wakeup()
    assert (driver.now, driver.places("p")) == (1900.0, ["unschedulable"])


def test_the_room_that_a_refused_pod_gives_back_does_not_wake_it() -> None:
    driver = driven('permit "never" { until: node.pods.exists(p, p.name == "q") timeout: 1s * pod.priority }')
    driver.see(node("n1"), pod("p"))
    driver.cycle()
    driver.wait(0.0)
    assert driver.places("p") == ["unschedulable"]


@pytest.mark.parametrize("timeout", ["1s * pod.priority", "1ms"])
def test_pods_that_are_refused_as_soon_as_they_are_reserved_do_not_wake_each_other_for_ever(timeout: str) -> None:
    driver = driven(f'permit "never" {{ until: node.pods.exists(p, p.name == "z") timeout: {timeout} }}')
    driver.see(node("n1"), pod("p"), pod("q"), pod("r"))
    for _ in range(20):
        driver.cycle()
        driver.wait(0.1)
    assert driver.places("p", "q", "r") == ["unschedulable"] * 3
    assert sum(driver.told(uid).count("attempted") for uid in "pqr") <= 3 * 3


def test_a_pod_that_was_refused_beside_a_waiting_one_is_tried_again_when_that_is_refused() -> None:
    driver = driven('permit "never" when pod.name == "p" { until: pod.name == "z" timeout: 10s }')
    driver.see(node("n1", cpu="1"), pod("p"))
    driver.cycle()
    driver.see(pod("q"))
    assert (binds(driver.cycle()), driver.places("p", "q")) == ({}, ["waiting at permit", "unschedulable"])
    driver.wait(10.0)
    assert binds(driver.cycle()) == {"q": "n1"}


def test_a_delay_without_a_value_refuses_the_pod_and_says_why() -> None:
    driver = driven('permit "slow" { delay: 1s / pod.priority }').showing(node("n1"), pod("p"))
    (_, note), *_ = notes(driver.cycle())
    assert "slow: `1s / pod.priority` has no value: " in note


def test_annotations_are_written_with_the_binding_as_they_read_on_the_chosen_node() -> None:
    driver = driven('bind { annotations: {"example.com/on": "{node.name}: {node.free.cpu}", plain: "yes"} }')
    driver.see(node("n1", cpu="4"), pod("p", cpu="1"))
    (bind,) = [action for action in driver.cycle() if isinstance(action, Bind)]
    assert bind.annotations == {"example.com/on": "n1: 3", "plain": "yes"}


def test_what_is_written_at_the_binding_tells_how_often_the_pod_was_tried_before() -> None:
    driver = driven('bind { annotations: {tries: "{pod.attempts}"} } on preBind log "{pod.attempts}"').showing(pod("p"))
    driver.cycle()
    driver.see(node("n1"))
    driver.until_wakeup()
    actions = driver.cycle()
    assert [action.annotations for action in actions if isinstance(action, Bind)] == [{"tries": "1"}]
    assert lines(actions) == ["preBind: 1"]


def test_lines_are_said_at_their_points_with_what_is_known_there() -> None:
    points = ("preEnqueue", "preFilter", "postFilter", "reserve", "permit", "preBind", "postBind")
    chosen = points[3:]
    members = [f'on {point} log "{{pod.name}}{" on {node.name}" if point in chosen else ""}"' for point in points]
    driver = driven("\n".join(members)).showing(node("n1"))
    assert lines(driver.see(pod("p"))) == ["preEnqueue: p"]
    assert lines(driver.cycle()) == ["preFilter: p", "reserve: p on n1", "permit: p on n1", "preBind: p on n1"]
    assert lines(driver.send(BindSucceeded("p"))) == ["postBind: p on n1"]
    driver.see(pod("large", cpu="9"))
    assert lines(driver.cycle()) == ["preFilter: large", "postFilter: large"]


def test_a_line_is_said_only_where_its_when_holds() -> None:
    driver = driven('on reserve when node.free.cpu < 1 log "full"\non reserve when 1 / pod.priority > 0 log "never"')
    driver.see(node("n1", cpu="2"), pod("p", cpu="1"), pod("q", cpu="1"))
    assert lines(driver.cycle()) == ["reserve: full"]


def test_the_hash_of_the_policy_is_said_with_its_lines() -> None:
    profile = policy('on preFilter log "x"')
    driver = Driver(profile).showing(node("n1"), pod("p"))
    said = [action for action in driver.cycle() if isinstance(action, Log)]
    assert [(line.policy_hash, line.node, line.uid) for line in said] == [(profile.policy_hash, "", "p")]
