"""A PodGroup with a topology constraint is placed within one domain of nodes."""

from __future__ import annotations

from tests.builders import NodeBuilder
from tests.scheduler.driver import Driver, binds, node, notes
from tests.scheduler.gangs.native_groups import member, said, scheduler, show_group

RACK = "example.com/rack"
WITHIN = {"topology": [{"key": RACK}]}


def in_rack(name: str, rack: str, cpu: str = "2") -> NodeBuilder:
    return node(name, cpu).label(RACK, rack)


def constrained(driver: Driver, minimum: int | None = 2) -> Driver:
    show_group(driver, minimum, schedulingConstraints=WITHIN)
    return driver


def test_a_gang_stands_in_one_domain_though_others_have_more_room():
    driver = scheduler().showing(in_rack("a1", "a", "3"), in_rack("b1", "b", "2"), in_rack("b2", "b", "2"))
    constrained(driver, minimum=4).showing(*(member(name) for name in "wxyz"))
    placed = binds(driver.cycle())
    assert sorted(placed.values()) == ["b1", "b1", "b2", "b2"]


def test_a_gang_that_fits_in_no_domain_is_not_placed_across_them():
    driver = scheduler().showing(in_rack("a1", "a"), in_rack("b1", "b"))
    constrained(driver, minimum=3).showing(*(member(name) for name in "xyz"))
    actions = driver.cycle()
    assert binds(actions) == {}
    told = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert said(actions) == [("False", "Unschedulable", told)]
    first = f"gang pod-group: 0/2 domains of `{RACK}` are available: room for 2 of 3 members in the first, `a`"
    assert notes(actions)[0][1].startswith(f"{first}; default/z: 0/2 nodes are available: ")
    driver.see(in_rack("a2", "a"))
    driver.wait(30.0)
    assert set(binds(driver.cycle()).values()) <= {"a1", "a2"}


def test_nodes_without_the_label_are_in_no_domain():
    driver = scheduler().showing(node("n1", "8"))
    constrained(driver).showing(member("x"), member("y"))
    actions = driver.cycle()
    assert said(actions) == [("False", "Unschedulable", "no feasible placements found")]
    assert f"no node has the label `{RACK}`" in notes(actions)[0][1]
    driver.see(in_rack("n1", "a", "8"))
    driver.wait(30.0)
    assert binds(driver.cycle()) == {"x": "n1", "y": "n1"}


def test_a_group_with_a_disruption_mode_is_told_that_nobody_goes_for_it():
    driver = scheduler().showing(in_rack("a1", "a", "1"))
    show_group(driver, schedulingConstraints=WITHIN, disruptionMode="Pod", priority=10)
    driver.see(member("x"), member("y"))
    ((_, _, message),) = said(driver.cycle())
    assert message.endswith("workload aware preemption is not supported for pod groups with scheduling constraints")


def test_the_domain_with_room_for_more_members_is_taken_and_the_fuller_of_two():
    driver = scheduler().showing(in_rack("a1", "a", "2"), in_rack("b1", "b", "3"), in_rack("c1", "c", "4"))
    constrained(driver).showing(member("x"), member("y"), member("z"))
    assert set(binds(driver.cycle()).values()) == {"b1"}


def test_members_that_come_later_go_to_the_domain_of_the_others():
    driver = scheduler().showing(in_rack("a1", "a", "2"), in_rack("b1", "b", "8"))
    constrained(driver, minimum=2).showing(member("x").node("a1"), member("y"))
    assert binds(driver.cycle()) == {"y": "a1"}
    driver.see(member("z"))
    assert binds(driver.cycle()) == {}
    assert driver.places("z") == ["unschedulable"]
    driver.see(in_rack("a2", "a"))
    driver.wait(30.0)
    assert binds(driver.cycle()) == {"z": "a2"}


def test_a_group_that_is_no_gang_stands_in_one_domain_as_far_as_there_is_room():
    driver = scheduler().showing(in_rack("a1", "a", "1"), in_rack("b1", "b", "2"))
    constrained(driver, minimum=None).showing(member("x"), member("y"), member("z"))
    placed = binds(driver.cycle())
    assert set(placed.values()) == {"b1"} and len(placed) == 2


def test_a_group_that_stands_in_two_domains_is_an_error():
    driver = scheduler().showing(in_rack("a1", "a"), in_rack("b1", "b"))
    constrained(driver, minimum=3).showing(member("x").node("a1"), member("y").node("b1"), member("z"))
    actions = driver.cycle()
    why = "more than 1 domain found for pod group: a, b"
    prefix = "cannot determine domain for already scheduled pods: "
    assert said(actions) == [("False", "SchedulerError", prefix + why)]
    assert why in notes(actions)[0][1]


def test_nobody_is_preempted_for_a_group_with_a_constraint():
    driver = scheduler().showing(in_rack("a1", "a"))
    driver.see(member("low", group="", cpu="2").node("a1").priority(-1))
    constrained(driver).showing(member("x"), member("y"))
    actions = driver.cycle()
    assert said(actions)[0][:2] == ("False", "Unschedulable")
    assert not any(type(action).__name__ == "DeleteVictim" for action in actions)


def test_a_label_that_moves_a_node_to_the_domain_wakes_the_gang():
    driver = scheduler().showing(in_rack("a1", "a", "1"), in_rack("b1", "b", "1"))
    constrained(driver).showing(member("x"), member("y"))
    assert binds(driver.cycle()) == {}
    driver.see(in_rack("b1", "a", "1"))
    driver.wait(30.0)
    assert set(binds(driver.cycle()).values()) == {"a1", "b1"}
