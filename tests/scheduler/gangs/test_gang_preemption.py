"""Whom a gang has evicted, and which of two gangs that block each other gives way."""

from __future__ import annotations

import pytest

from policyengine.scheduler.messages import PodDeleted, VictimDeleted
from tests.scheduler.driver import Driver, binds, deletions, node, pod, victims
from tests.scheduler.gangs.gangs import member, scheduler


def test_nobody_is_preempted_for_a_gang_that_would_still_not_fit():
    driver = scheduler().showing(node("n1", cpu="2"), pod("low", "2").node("n1"))
    driver.see(*(member(name, "3").priority(10) for name in "abc"))
    assert victims(driver.cycle()) == []


def test_a_gang_preempts_when_the_whole_of_it_fits_then():
    driver = scheduler().showing(node("n1", cpu="1"), node("n2", cpu="1"))
    driver.see(pod("low-1").node("n1"), pod("low-2").node("n2"))
    driver.see(*(member(name, "2").priority(10) for name in "ab"))
    actions = driver.cycle()
    assert sorted(victims(actions)) == ["low-1", "low-2"]
    for uid in ("low-1", "low-2"):
        driver.send(PodDeleted("default", uid, uid))
    driver.wait(3.0)
    assert sorted(binds(driver.cycle())) == ["a", "b"]


def test_a_gang_whose_victims_take_their_time_is_not_tried_without_a_pause():
    driver = scheduler().showing(node("n1", cpu="1"), node("n2", cpu="1"), node("n3", cpu="500m"))
    low = {f"low-{number}": pod(f"low-{number}").node(f"n{number}") for number in (1, 2)}
    driver.see(pod("other", "500m").priority(20).node("n3"))
    driver.see(*low.values(), *(member(name).priority(10) for name in "ab"))
    for asked in deletions(driver.cycle()):
        driver.send(VictimDeleted(asked))
    for one in low.values():
        driver.see(one.deleting("2100-01-01T00:00:00Z").condition("DisruptionTarget", "True", "PreemptionByScheduler"))
    driver.send(PodDeleted("default", "other", "other"))
    for _ in range(10):
        assert victims(driver.wait(1.0) + driver.cycle()) == []
    nominated = {uid: driver.state.view.pods[uid].nominated_node_name for uid in "ab"}
    assert sorted(nominated.values()) == ["n1", "n2"]
    assert driver.told("a").count("attempted") == 2
    for uid in low:
        driver.send(PodDeleted("default", uid, uid))
    driver.wait(3.0)
    assert binds(driver.cycle()) == nominated


def test_a_member_never_preempts_its_mate():
    driver = scheduler().showing(node("n1", cpu="1"), member("a").priority(10), member("b").priority(0))
    actions = driver.cycle()
    assert victims(actions) == []
    assert binds(actions) == {}


def test_a_gang_preempts_a_gang_on_whichever_nodes_that_runs():
    driver = scheduler().showing(node("n1", cpu="1"), node("n2", cpu="1"))
    driver.see(member("x", gang="low").node("n1"), member("y", gang="low").node("n2"))
    driver.see(*(member(name).priority(10) for name in "ab"))
    assert sorted(victims(driver.cycle())) == ["x", "y"]


# ---- two gangs bound in part that block each other


def half_bound(first: dict[str, str], second: dict[str, str], priority: int = 0, **changes) -> Driver:
    """`a` stands on n1, `x` on n2, and their mates, `b` and `y`, fit on neither; `b` is refused a second before `y`."""
    driver = scheduler(**changes).showing(node("n1", cpu="1"), node("n2", cpu="1"))
    driver.see(member("a", **first).node("n1"), member("x", gang="h", **second).priority(priority).node("n2"))
    driver.see(member("b", **first))
    assert binds(driver.cycle()) == {}
    driver.wait(1.0)
    driver.see(member("y", gang="h", **second))
    assert binds(driver.cycle()) == {}
    return driver


def dissolved(driver: Driver, seconds: float) -> dict[str, float]:
    """Who is deleted within so many seconds, and after how many."""
    began, found = driver.now, {}
    while (wakeup := driver.state.next_wakeup()) is not None and wakeup <= began + seconds:
        driver.until_wakeup()
        found |= dict.fromkeys(victims(driver.cycle()), driver.now - began)
    return found


SHORT = {"timeout": "30"}


@pytest.mark.parametrize(
    ("first", "second", "priority", "gone"),
    [
        (SHORT, SHORT, 0, {"x": 30.0}),
        ({"timeout": "50"}, SHORT, 0, {"x": 30.0}),
        (SHORT, {"timeout": "50"}, 0, {"x": 50.0}),
        (SHORT, SHORT, 5, {"a": 29.0}),
        (SHORT, SHORT | {"waits": "600"}, 0, {"a": 29.0}),
        (SHORT | {"waits": "600"}, SHORT | {"waits": "600"}, 0, {"x": 30.0}),
    ],
)
def test_of_two_gangs_that_block_each_other_one_gives_way_at_its_timeout(first, second, priority, gone):
    driver = half_bound(first, second, priority)
    found = dissolved(driver, 60.0)
    assert {uid: round(at) for uid, at in found.items()} == gone
    (uid,) = gone
    driver.send(PodDeleted("default", uid, uid))
    driver.wait(12.0)
    waits = "b" if uid == "x" else "y"
    assert binds(driver.cycle()) == {waits: "n2" if uid == "x" else "n1"}


def test_nobody_gives_way_to_a_gang_that_would_still_not_fit_or_may_not_preempt():
    for more, changes in (({"min": "3"}, {}), ({}, {"post_filters": ()})):
        driver = half_bound(SHORT | more, SHORT | more, **changes)
        assert dissolved(driver, 1000.0) == {}
