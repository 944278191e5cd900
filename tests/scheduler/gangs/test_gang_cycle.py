"""Gangs are placed together or not at all; what becomes of late, deleted, failing and edited members."""

from __future__ import annotations

import pytest

from policyengine.framework.events import ASSIGNED_POD_ADD, ClusterEventWithHint
from policyengine.framework.reservation import PERMITTED, Permission, Plan
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    PodDeleted,
)
from tests.scheduler.driver import binds, conditions, node, notes, pod
from tests.scheduler.gangs.gangs import member, scheduler
from tests.scheduler.policy_members import driven
from tests.scheduler.storage import claim


def test_a_gang_that_fits_is_placed_in_one_cycle_on_one_snapshot():
    driver = scheduler().showing(node("n1", cpu="2"), node("n2", cpu="2"))
    driver.see(*(member(name, "4") for name in "abcd"))
    placed = binds(driver.cycle(1))
    assert sorted(placed) == ["a", "b", "c", "d"]
    assert sorted(placed.values()) == ["n1", "n1", "n2", "n2"]


def test_a_gang_that_does_not_fit_holds_nothing_and_each_member_is_told():
    driver = scheduler()
    driver.see(node("n1", cpu="3"), *(member(name, "2", cpu="2") for name in "ab"), pod("single", "3"))
    actions = driver.cycle()
    assert binds(actions) == {"single": "n1"}
    said = "gang pod-group: room for 1 of 2 members; default/b: 0/1 nodes are available: 1 Insufficient cpu."
    assert conditions(actions)[:2] == [("Unschedulable", said)] * 2
    assert notes(actions)[0] == ("FailedScheduling", said)


def test_members_beyond_the_minimum_go_on_their_own():
    driver = scheduler().showing(node("n1", cpu="2"), *(member(name, "2") for name in "abc"))
    actions = driver.cycle()
    assert binds(actions) == {"a": "n1", "b": "n1"}
    assert driver.places("c") == ["unschedulable"]
    assert notes(actions)[0][1].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_member_that_fits_nowhere_is_passed_over_for_one_that_does():
    driver = scheduler().showing(node("n1", cpu="4"), member("a"), member("b", cpu="9"), member("c"))
    assert binds(driver.cycle()) == {"a": "n1", "c": "n1"}


def test_members_are_packed_tightly_where_the_ranking_scatters_the_room():
    driver = scheduler().showing(node("n1", cpu="3"), node("n2", cpu="2"))
    driver.see(member("a", "2", cpu="2"), member("b", "2", cpu="3"))
    assert binds(driver.cycle()) == {"a": "n2", "b": "n1"}


def test_what_stands_against_the_packing_alone_wakes_the_gang_too():
    """In the queue's order the quota refuses the others beside the large a; of the small ones one has no room."""
    driver = driven("""
      queue { order by pod.requests.cpu desc }
      gang "crew" when "gang" in pod.labels { key: pod.labels["gang"] min: 3 timeout: 60s }
      quota "crew" when "gang" in pod.labels { limit: {cpu: 2} }
    """)
    driver.see(node("n1", pods="3"), pod("stands").node("n1"))
    driver.see(member("a", cpu="2"), *(member(name, cpu="600m") for name in "bcd"))
    assert binds(driver.cycle()) == {}
    driver.now += 15
    driver.send(PodDeleted("default", "stands"))
    assert sorted(binds(driver.cycle())) == ["b", "c", "d"]


def test_what_helps_one_member_may_help_its_mates_through_it():
    """Each wants to be where a `t1` is, and none is one; a becomes one, may be the first, and the others follow it."""
    driver = scheduler().showing(node("n1").label("host", "n1"))
    driver.see(*(member(name, "3").pod_affinity("host", {"team": "t1"}) for name in "abc"))
    assert binds(driver.cycle()) == {}
    driver.see(member("a", "3", team="t1").pod_affinity("host", {"team": "t1"}))
    driver.wait(2.0)
    assert sorted(binds(driver.cycle())) == ["a", "b", "c"]


def test_the_member_whose_turn_it_was_goes_on_alone_where_smaller_ones_were_enough():
    driver = scheduler().showing(node("n1", cpu="2"), member("a", cpu="2"), member("b"), member("c"))
    assert binds(driver.cycle()) == {"b": "n1", "c": "n1"}
    assert driver.places("a") == ["unschedulable"]  # tried on its own, and refused


def test_a_late_member_brings_those_along_that_wait_for_it():
    driver = scheduler().showing(node("n1", cpu="4"), member("a"), member("b", cpu="9"))
    assert binds(driver.cycle()) == {}
    driver.see(member("c"))
    driver.wait(2.0)
    assert binds(driver.cycle()) == {"a": "n1", "c": "n1"}


def test_room_that_becomes_free_wakes_the_whole_gang():
    driver = scheduler().showing(node("n1", cpu="3"), pod("there", "2").node("n1"), member("a"), member("b"))
    assert binds(driver.cycle()) == {}
    driver.send(PodDeleted("default", "there", "there"))
    driver.wait(2.0)
    assert binds(driver.cycle()) == {"a": "n1", "b": "n1"}


def test_a_gang_stands_where_its_first_member_stands():
    driver = scheduler().showing(node("n1", cpu="2"), pod("single", "2").priority(5))
    driver.see(member("a"), member("b").priority(9))
    assert sorted(binds(driver.cycle())) == ["a", "b"]


# ---- what is bad input, and what changes midway


def test_a_minimum_that_is_lowered_lets_the_gang_go():
    driver = scheduler().showing(node("n1", cpu="9"), member("a", "3"), member("b", "3"))
    driver.see(member("a", "2"), member("b", "2"))
    assert sorted(binds(driver.cycle())) == ["a", "b"]


def test_a_minimum_that_is_raised_takes_back_what_was_not_bound_yet():
    driver = scheduler().showing(node("n1", cpu="9"), member("a"), member("b"))
    driver.cycle()
    driver.see(member("a", "3"))
    assert [driver.state.may_bind(uid) for uid in "ab"] == [False, False]
    for uid in "ab":
        driver.send(BindFailed(uid, BindFailure.WITHDRAWN, "not posted"))
    assert driver.places("a", "b") == ["held", "held"]


def test_a_member_that_leaves_for_another_gang_leaves_the_rest_held():
    driver = scheduler().showing(node("n1", cpu="1"), member("a"), member("b"))
    driver.cycle()
    driver.see(member("b", gang="other"))
    assert driver.places("a", "b") == ["held", "held"]


def test_a_gang_may_span_namespaces_where_its_key_says_so():
    driver = scheduler()
    elsewhere = member("b").set("metadata.namespace", "other")
    driver.see(node("n1", cpu="2"), member("a"), elsewhere)
    assert sorted(binds(driver.cycle())) == ["a", "b"]


# ---- bindings that fail (faults.md, 23)


def test_a_binding_that_fails_takes_back_those_not_posted_and_all_try_again_together():
    driver = scheduler().showing(node("n1", cpu="3"), *(member(name, "3") for name in "abc"))
    assert sorted(binds(driver.cycle())) == ["a", "b", "c"]
    driver.send(BindSucceeded("a"))
    driver.send(BindFailed("b", BindFailure.REFUSED, "forbidden"))
    assert not driver.state.may_bind("c")
    driver.send(BindFailed("c", BindFailure.WITHDRAWN, "not posted"))
    driver.cycle()
    assert driver.places("b", "c") == ["backoff", "unschedulable"]
    driver.wait(3.0)
    assert sorted(binds(driver.cycle())) == ["b", "c"]


def test_a_withdrawn_binding_that_was_posted_all_the_same_counts():
    driver = scheduler().showing(node("n1", cpu="3"), *(member(name, "3") for name in "abc"))
    driver.cycle()
    driver.send(BindFailed("b", BindFailure.REFUSED, "forbidden"))
    driver.send(BindSucceeded("a"))
    driver.send(BindSucceeded("c"))
    driver.wait(3.0)
    assert binds(driver.cycle()) == {"b": "n1"}


def test_a_member_deleted_while_the_others_are_being_bound_takes_them_back():
    driver = scheduler().showing(node("n1", cpu="3"), member("a"), member("b"))
    driver.cycle()
    driver.send(PodDeleted("default", "a", "a"))
    assert not driver.state.may_bind("b")
    driver.send(BindFailed("b", BindFailure.WITHDRAWN, "not posted"))
    assert driver.places("b") == ["held"]


def test_a_member_bound_by_somebody_else_counts():
    driver = scheduler().showing(node("n1", cpu="2"), pod("there", "1").node("n1"), member("a"), member("b"))
    assert binds(driver.cycle()) == {}
    driver.see(member("a").node("n2"))
    driver.wait(3.0)
    assert binds(driver.cycle()) == {"b": "n1"}


@pytest.mark.parametrize("failure", [BindFailure.REFUSED, BindFailure.OVERLOADED, BindFailure.NOT_FOUND, None])
def test_a_member_of_unknown_outcome_is_not_posted_again_beside_a_mate_that_fails(failure: BindFailure | None):
    driver = scheduler().showing(node("n1", cpu="1"), node("n2", cpu="1"), member("a"), member("b"))
    placed = binds(driver.cycle())
    for uid in "ba":
        driver.send(BindUnknown(uid, "timed out"))
    if failure is None:
        driver.see(node(placed["b"], cpu="1").unschedulable())
    assert binds(driver.read(member("b"))) == ({"b": placed["b"]} if failure else {})
    if failure is not None:
        driver.send(BindFailed("b", failure, "posted again, and refused"))
    for _ in range(3):  # neither can come to a node now, and both can
        assert binds(driver.read(member("a"))) == {}
        driver.until_wakeup()
    assert driver.places("a", "b") == ["binding", "binding"]


def test_a_withdrawn_member_that_is_seen_bound_brings_the_others_along():
    driver = scheduler().showing(node("n1", cpu="3"), *(member(name, "3") for name in "abc"))
    driver.cycle()
    driver.send(BindSucceeded("a"))
    driver.send(BindUnknown("b", "timed out"))
    driver.send(BindFailed("c", BindFailure.REFUSED, "forbidden"))
    driver.wait(3.0)
    assert binds(driver.cycle()) == {}
    driver.see(member("b", "3").node("n1"))
    driver.wait(3.0)
    assert binds(driver.cycle()) == {"c": "n1"}


# ---- Permit


class Gatekeeper:
    """Lets pods go whose name is in `open`, has others wait."""

    name = "Gatekeeper"

    def __init__(self, *names: str, refuses: str = "", timeout: float = 500.0) -> None:
        self.open = set(names)
        self.refuses = refuses
        self.timeout = timeout

    def events_to_register(self):
        return [ClusterEventWithHint(ASSIGNED_POD_ADD)]

    def permit(self, pod, node_name, snapshot, waited):
        if pod.name == self.refuses:
            return Permission(Status(Code.UNSCHEDULABLE, ("no",)))
        return PERMITTED if pod.name in self.open else Permission(Status(Code.WAIT), self.timeout)


def test_no_member_is_bound_until_all_were_let_go():
    keeper = Gatekeeper("a")
    driver = scheduler(permit=(keeper,)).showing(node("n1", cpu="3"), member("a"), member("b"))
    assert binds(driver.cycle()) == {}
    assert driver.places("a", "b") == ["waiting at permit", "waiting at permit"]
    keeper.open.add("b")
    driver.see(pod("event", "1").node("n1"))
    assert sorted(binds(driver.wait(0.0))) == ["a", "b"]


def test_a_partial_reservation_never_outlives_the_timeout():
    driver = scheduler(permit=(Gatekeeper("a"),))
    driver.see(node("n1", cpu="3"), member("a", timeout="30"), member("b", timeout="30"))
    driver.cycle()
    driver.wait(29.0)
    assert driver.places("a", "b") == ["waiting at permit", "waiting at permit"]
    driver.wait(1.0)
    assert driver.state.view.nodes.pod_count[0] == 0


def test_a_member_that_wants_the_room_of_those_refused_at_permit_does_not_bring_them_along():
    driver = scheduler(permit=(Gatekeeper(timeout=20.0),)).showing(node("n1", cpu="2"), *map(member, "abc"))
    driver.cycle()
    assert driver.places("a", "b", "c") == ["waiting at permit", "waiting at permit", "unschedulable"]
    driver.wait(20.0)
    driver.cycle()
    assert driver.places("a", "b", "c") == ["unschedulable", "unschedulable", "unschedulable"]
    assert driver.state.view.nodes.pod_count[0] == 0


def test_a_gang_whose_time_is_up_at_permit_is_woken_by_what_would_have_let_it_go():
    keeper = Gatekeeper("a")
    driver = scheduler(permit=(keeper,)).showing(node("n1"), member("a", timeout="30"), member("b", timeout="30"))
    driver.cycle()
    driver.wait(30.0)
    assert driver.places("a", "b") == ["unschedulable", "unschedulable"]
    keeper.open.add("b")
    driver.see(pod("event", "1").node("n1"))
    driver.wait(2.0)
    assert sorted(binds(driver.cycle())) == ["a", "b"]


def test_a_member_refused_at_permit_takes_the_others_back_without_a_hot_loop():
    driver = scheduler(permit=(Gatekeeper("a", "c", refuses="b"),))
    driver.see(node("n1", cpu="3"), member("a"), member("b"))
    assert binds(driver.cycle(1000)) == {}
    assert driver.places("a", "b") == ["unschedulable", "unschedulable"]
    assert driver.told("a").count("attempted") == 1
    assert driver.state.view.nodes.pod_count[0] == 0


def test_a_member_that_a_filter_of_its_gangs_name_refuses_waits_with_the_others_and_comes_with_them():
    driver = driven(
        """gang "crew" when "gang" in pod.labels { key: pod.labels["gang"] min: 3 timeout: 60s }
        filter "crew" when pod.labels[?"size"].orValue("") == "big" { require node.labels[?"size"].hasValue() }"""
    )
    driver.see(node("n1", cpu="9"), member("a"), member("b", size="big"), member("c"))
    assert binds(driver.cycle(1000)) == {}
    assert [driver.told(name).count("attempted") for name in "abc"] == [1, 1, 1]
    driver.see(node("n1", cpu="9").label("size", "any"))
    driver.wait(20.0)
    assert sorted(binds(driver.cycle(1000))) == ["a", "b", "c"]


# ---- volumes that are prepared first (PreBind)


class SlowVolume:
    """Pod `b` has a volume to wait for."""

    name = "SlowVolume"
    kinds = ("PersistentVolumeClaim",)
    is_ready = False

    def events_to_register(self):
        return []

    def plan(self, pod, node_name, snapshot):
        return (SUCCESS, Plan(timeout=40.0)) if pod.name == "b" else (Status(Code.SKIP), Plan())

    def prepared(self, pod, node_name, plan, snapshot):
        return SUCCESS if self.is_ready else Status(Code.WAIT)


def test_no_member_is_bound_before_the_volumes_of_all_are_prepared():
    volume = SlowVolume()
    driver = scheduler(pre_bind=(volume,)).showing(node("n1", cpu="3"), member("a"), member("b"))
    assert binds(driver.cycle()) == {}
    assert driver.places("a", "b") == ["waiting at permit", "waiting at prebind"]
    volume.is_ready = True
    driver.observe(claim("c", 5))
    assert sorted(binds(driver.wait(0.0))) == ["a", "b"]


def test_a_volume_that_is_not_prepared_in_time_takes_the_others_back():
    driver = scheduler(pre_bind=(SlowVolume(),)).showing(node("n1", cpu="3"), member("a"), member("b"))
    driver.cycle()
    assert binds(driver.wait(40.0)) == {}
    assert driver.places("a", "b") == ["unschedulable", "backoff"]
    assert driver.state.view.nodes.pod_count[0] == 0
