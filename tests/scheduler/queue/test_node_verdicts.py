from dataclasses import replace

import pytest

from policyengine.framework.events import ASSIGNED_POD_DELETE, ClusterEventWithHint
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import DeleteVictim
from policyengine.scheduler.messages import BindFailed, BindFailure, Message, PodDeleted, PodObserved, VictimDeleted
from policyengine.scheduler.queue.node_verdicts import MOST_ASKED
from tests.builders import PodBuilder, make_pod
from tests.scheduler.driver import Driver, Label, Rule, binds, node, pod


def standing(name: str, on: str, cpu: str = "2") -> PodBuilder:
    return pod(name, cpu=cpu).node(on)


def full(*profiles) -> Driver:
    """Nodes a and b with two pods of 2 cpu each."""
    driver = Driver(*profiles).showing(node("a"), node("b"))
    return driver.showing(*(standing(f"{on}{i}", on) for on in "ab" for i in (1, 2)))


def gone(driver: Driver, name: str) -> None:
    driver.send(PodDeleted("default", name, name))


def waiting(driver: Driver, *pods: PodBuilder) -> None:
    driver.see(*pods)
    assert binds(driver.cycle()) == {}
    driver.wait(30.0)  # nobody backs off any more
    assert set(driver.places(*(one.build().metadata.uid for one in pods))) == {"unschedulable"}


def woken(driver: Driver, *names: str) -> list[str]:
    return [name for name, place in zip(names, driver.places(*names), strict=True) if place != "unschedulable"]


def test_a_pod_that_goes_wakes_those_that_its_node_would_take_now():
    driver = full()
    waiting(driver, pod("large", cpu="3"), pod("small", cpu="2"))
    gone(driver, "a1")
    assert woken(driver, "large", "small") == ["small"]
    gone(driver, "b1")
    assert woken(driver, "large") == []
    gone(driver, "b2")
    assert woken(driver, "large") == ["large"]


def test_of_pods_that_the_node_would_take_the_first_is_woken_and_the_next_once_it_is_placed():
    driver = full()
    waiting(driver, *(pod(name, cpu="1") for name in ("p", "q", "r")))
    gone(driver, "a1")
    assert woken(driver, "p", "q", "r") == ["p"]
    assert binds(driver.cycle(1)) == {"p": "a"}
    assert woken(driver, "q", "r") == ["q"]
    assert binds(driver.cycle(1)) == {"q": "a"}
    assert woken(driver, "r") == []


def test_the_first_is_the_first_in_the_queues_order():
    driver = full()
    waiting(driver, pod("low", cpu="1"), pod("high", cpu="1").priority(5, "Never"))
    gone(driver, "a1")
    assert woken(driver, "low", "high") == ["high"]


def test_of_each_tenant_the_first_is_woken_and_shares_say_whose_turn_it_is():
    fair = compile_policy('policy "p" { scheduler "default-scheduler" queue { fair by pod.namespace } }')
    driver = full(fair)
    others = [make_pod(name, "other").req(cpu="1") for name in ("x", "y")]
    waiting(driver, pod("p", cpu="1"), pod("q", cpu="1"), *others)
    gone(driver, "a1")
    assert woken(driver, "p", "q", "x", "y") == ["p", "x"]
    assert binds(driver.cycle(1)) == {"x": "a"}


def test_where_something_else_becomes_of_the_first_the_next_is_woken():
    driver = full()
    waiting(driver, *(pod(name, cpu="1") for name in ("p", "q", "r")))
    gone(driver, "a1")
    driver.send(PodDeleted("default", "p", "p"))
    assert woken(driver, "q", "r") == ["q"]


def test_a_first_that_another_filter_refuses_leaves_the_room_to_the_others():
    picky = Rule("Picky", lambda pod, name: Code.UNSCHEDULABLE if pod.name == "p" and name == "a" else None)
    profile = default_profile()
    driver = full(replace(profile, filters=(*profile.filters, picky)))
    waiting(driver, *(pod(name, cpu="1") for name in ("p", "q", "r")))
    gone(driver, "a1")
    assert woken(driver, "p", "q", "r") == ["p"]
    assert sorted(binds(driver.cycle()).values()) == ["a", "a"]
    assert driver.places("p") == ["unschedulable"]


def test_a_filter_that_refused_the_pod_too_keeps_it_asleep_until_it_lets_it_pass():
    few = compile_policy('policy "p" { scheduler "default-scheduler" filter "few" { require node.podCount < 1 } }')
    driver = Driver(few).showing(node("a"), standing("a1", "a", "3"), standing("a2", "a", "1"))
    driver.see(node("b"), standing("b1", "b", "1"))
    waiting(driver, pod("p", cpu="1"))
    gone(driver, "a2")
    assert woken(driver, "p") == []
    gone(driver, "a1")
    assert woken(driver, "p") == ["p"]


@pytest.mark.parametrize(("policy", "wakes"), [(None, True), ("Never", False)])
def test_a_pod_that_might_have_others_evicted_is_woken_by_whatever_goes(policy: str | None, wakes: bool):
    driver = full()
    waiting(driver, pod("p", cpu="5").priority(1, policy))
    gone(driver, "a1")
    assert woken(driver, "p") == ["p"] * wakes


def test_whom_the_policy_lets_have_others_evicted_by_rules_of_its_own_is_woken_by_whatever_goes():
    driver = full(compile_policy('policy "p" { scheduler "default-scheduler" preempt { maxVictims: 1 } }'))
    waiting(driver, pod("p", cpu="5"))
    gone(driver, "a1")
    assert woken(driver, "p") == ["p"]


def test_a_members_gang_is_woken_by_whatever_goes():
    driver = full(replace(default_profile(), gangs=(Label(),)))
    waiting(driver, *(pod(name, cpu="3").label("gang", "g").label("min", "2") for name in ("p", "q")))
    gone(driver, "a1")
    assert woken(driver, "p", "q") == ["p", "q"]


def test_who_is_looked_at_while_a_gang_is_placed_is_woken_when_a_member_gives_its_room_back():
    driver = full(replace(default_profile(), gangs=(Label(),)))
    p, q, r = (
        pod(name, cpu).node_affinity(("metadata.name", "In", [on]), fields=True)
        for name, cpu, on in (("p", "3", "a"), ("q", "3", "b"), ("r", "2", "b"))
    )
    p, q = (one.label("gang", "g").label("min", "2").priority(turn, "Never") for one, turn in ((p, 2), (q, 1)))
    waiting(driver, p, q, r)
    gone(driver, "b1")
    gone(driver, "b2")
    assert binds(driver.cycle(1)) == {}
    driver.see(p.nominated("b"))
    assert binds(driver.cycle(1)) == {}
    driver.wait(30.0)
    gone(driver, "a1")
    gone(driver, "a2")
    assert woken(driver, "p", "r") == ["p"]  # b is kept for p
    assert binds(driver.cycle()) == {"p": "a", "q": "b"}
    assert woken(driver, "r") == []  # b is taken by q
    driver.send(BindFailed("q", BindFailure.REFUSED, "no"))
    assert woken(driver, "r") == ["r"]


def test_a_filter_that_fails_when_it_is_asked_again_wakes_the_pod():
    answers = {"fails": False}

    def says(pod, name):
        if answers["fails"]:
            raise ValueError("broken")
        return Code.UNSCHEDULABLE

    fit = next(one for one in default_profile().filters if one.name == "NodeResourcesFit")
    driver = Driver(replace(default_profile(), filters=(Rule("Rule", says, fit.events_to_register()),)))
    driver.see(node("a"), standing("a1", "a"))
    waiting(driver, pod("p"))
    answers["fails"] = True
    gone(driver, "a1")
    assert woken(driver, "p") == ["p"]


def test_a_pod_is_woken_by_what_happens_to_itself_wherever_it_is_nominated():
    driver = full()
    waiting(driver, pod("p", cpu="3"))
    driver.see(pod("p", cpu="1").nominated("a"))
    assert woken(driver, "p") == ["p"]


def test_so_many_shapes_are_looked_at_for_one_event_and_the_others_woken():
    driver = full()
    shapes = [f"{3000 + i}m" for i in range(MOST_ASKED + 8)]
    waiting(driver, *(pod(shape, cpu=shape) for shape in shapes))
    gone(driver, "a1")
    assert len(woken(driver, *shapes)) == 8


def test_a_pod_that_is_looked_at_all_the_time_is_flushed_as_any_other():
    driver = full()
    waiting(driver, pod("p", cpu="3"))
    for turn in range(6):
        driver.wait(60.0)
        driver.see(standing(f"small{turn}", "a", "0"))
        gone(driver, f"small{turn}")
        driver.cycle()
    assert driver.told("p").count("attempted") == 2


def test_of_pods_that_were_refused_alike_one_is_flushed_at_a_time():
    driver = full()
    waiting(driver, *(pod(name, cpu="3") for name in "pqr"))
    driver.wait(270.0)
    for tried in ("p", "pq", "pqr"):
        driver.wait(30.0)
        driver.cycle()
        assert "".join(name for name in "pqr" if driver.told(name).count("attempted") == 2) == tried


def test_a_pod_that_the_flush_has_tried_keeps_its_turn():
    driver = full()
    driver.see(pod("p", cpu="2"))
    driver.cycle()
    driver.wait(100.0)
    driver.see(pod("q", cpu="2"))
    driver.cycle()
    driver.wait(231.0)
    driver.cycle()
    assert [driver.told(name).count("attempted") for name in "pq"] == [2, 1]
    gone(driver, "a1")
    assert woken(driver, "p", "q") == ["p"]


@pytest.mark.parametrize(
    "end", [BindFailed("p", BindFailure.REFUSED, "no"), PodObserved(pod("p", cpu="2").deleting().build())]
)
@pytest.mark.parametrize("size", ["2", "4"])
def test_who_was_looked_at_while_a_reservation_held_the_room_is_woken_when_it_is_given_back(end: Message, size: str):
    driver = Driver().showing(node("a"), standing("a1", "a", "4"))
    if size == "2":  # is left for whom the reservation is made
        waiting(driver, pod("p", cpu="2"), pod("q", cpu="2"))
        driver.see(standing("a2", "a", "2"))
        gone(driver, "a1")
        assert binds(driver.cycle(1)) == {"p": "a"}
    else:  # found the room taken already
        waiting(driver, pod("q", cpu="4"))
        gone(driver, "a1")
        driver.see(standing("a2", "a", "2"), pod("p", cpu="2").priority(1))
        assert binds(driver.cycle(1)) == {"p": "a"}
        driver.cycle()
        driver.wait(30.0)
        gone(driver, "a2")
    assert woken(driver, "q") == []
    driver.send(end)
    assert woken(driver, "q") == ["q"]


def test_a_pod_that_room_is_made_for_in_vain_gives_its_node_up_to_others():
    driver = Driver().showing(node("a", cpu="6"), standing("v", "a", "3"), standing("w", "a", "1").priority(5))
    driver.see(pod("q", cpu="4").priority(5))
    for asked in [one for one in driver.cycle() if isinstance(one, DeleteVictim)]:
        driver.see(standing("v", "a", "3").deleting())
        driver.send(VictimDeleted(asked, True))
    assert dict(driver.state.view.nominated).keys() == {"a"}
    driver.see(pod("p", cpu="2").priority(10))
    assert binds(driver.cycle()) == {"p": "a"}
    driver.wait(30.0)
    gone(driver, "v")
    assert binds(driver.cycle()) == {}
    assert not driver.state.view.nominated
    driver.see(pod("r", cpu="1"))
    assert binds(driver.cycle()) == {"r": "a"}


def test_of_pods_that_back_off_the_first_in_the_queues_order_gets_the_room_where_it_is_ready_in_time():
    driver = Driver().showing(node("a", pods="99"), standing("a1", "a", "4"))
    driver.see(pod("low", cpu="4").priority(0, "Never"))
    driver.cycle()
    driver.wait(1.0)
    driver.see(pod("high", cpu="4").priority(5, "Never"))
    driver.cycle()
    driver.see(*(pod(f"busy{i}", cpu="0").priority(9, "Never") for i in range(20)))
    gone(driver, "a1")
    found = {}
    for _ in range(6):
        found |= binds(driver.cycle(4))
        driver.wait(0.5)
    assert {name: on for name, on in found.items() if not name.startswith("busy")} == {"high": "a"}


def test_one_event_has_nobody_tried_twice_however_many_find_room_by_it():
    driver = Driver()
    driver.see(node("a", pods="20").label("kubernetes.io/hostname", "a"), standing("a1", "a", "4").label("app", "x"))
    driver.see(pod("other", cpu="0").label("app", "x").node("a"))
    alone = pod("alone", cpu="0").label("app", "x").pod_anti_affinity("kubernetes.io/hostname", {"app": "x"})
    waiting(driver, alone, *(pod(f"p{i}", cpu="1") for i in range(4)))
    gone(driver, "a1")
    for _ in range(20):
        driver.cycle(1)
        driver.wait(2.0)
    assert [driver.told(name).count("attempted") for name in ("alone", "p3")] == [2, 2]


def test_the_next_is_woken_where_the_first_has_to_wait_for_its_binding_too():
    driver = full()
    waiting(driver, pod("p", cpu="1"), pod("q", cpu="1"))
    gone(driver, "a1")
    assert binds(driver.cycle(1)) == {"p": "a"}
    assert binds(driver.cycle(1)) == {"q": "a"}


def test_a_pod_that_is_edited_and_so_not_the_first_any_more_lets_the_first_come_before_others():
    ranked = 'queue { order by pod.labels[?"rank"].orValue("5") asc }'
    driver = full(compile_policy(f'policy "p" {{ scheduler "default-scheduler" {ranked} }}'))
    waiting(driver, pod("p", cpu="2").label("rank", "1"), pod("q", cpu="2").label("rank", "2"))
    gone(driver, "a1")
    driver.see(pod("p", cpu="2").label("rank", "9"), pod("r", cpu="2").label("rank", "5"))
    assert binds(driver.cycle()) == {"q": "a"}


def test_a_pod_that_is_woken_for_itself_and_with_those_like_it_is_woken_once():
    host = "kubernetes.io/hostname"
    driver = Driver()
    for name in ("a", "b"):
        driver.see(node(name).label(host, name), standing(f"{name}1", name, "4").label("app", "x"))
    driver.see(node("c").label(host, "c"), pod("c1", cpu="0").label("app", "x").node("c"))
    alone = pod("p", cpu="1").label("app", "x").pod_anti_affinity(host, {"app": "x"})
    waiting(driver, alone)
    driver.see(alone.nominated("a"))
    gone(driver, "b1")
    assert driver.told("p").count("woken") == 1


class Gate:
    """Lets nobody in once so many pods stand on nodes."""

    def __init__(self, name: str, shuts_at: int, *events: ClusterEventWithHint) -> None:
        self.name, self.shuts_at, self._events, self._asked = name, shuts_at, events, 0

    def events_to_register(self):
        return self._events

    def pre_enqueue(self, pod, snapshot):
        self._asked += 1
        if self._asked == 50:
            pytest.fail("this never ends")
        is_shut = snapshot.nodes.pod_count.sum() >= self.shuts_at
        return Status(Code.UNSCHEDULABLE, ("shut",)) if is_shut else SUCCESS


def test_who_came_to_the_gate_while_a_reservation_shut_it_is_let_in_when_that_is_given_back():
    gate = Gate("Gate", 1, ClusterEventWithHint(ASSIGNED_POD_DELETE))
    driver = Driver(replace(default_profile(), pre_enqueue=(gate,))).showing(node("a"), pod("p"))
    assert binds(driver.cycle()) == {"p": "a"}
    driver.see(pod("q"))
    assert driver.places("q") == ["gated"]
    driver.send(BindFailed("p", BindFailure.REFUSED, "no"))
    assert driver.places("q") == ["active"]


def test_a_gate_of_the_name_of_a_filter_that_has_been_shut_keeps_all_out_and_that_is_that():
    gate = Gate("NodeResourcesFit", 99)
    driver = full(replace(default_profile(), pre_enqueue=(gate,)))
    waiting(driver, pod("p", cpu="1"), pod("q", cpu="1"))
    gate.shuts_at = 0
    gone(driver, "a1")
    assert driver.places("p", "q") == ["gated", "gated"]


def test_pods_that_are_alike_are_not_looked_at_one_after_the_other_where_the_first_is_refused():
    host = "kubernetes.io/hostname"
    driver = Driver()
    for name in ("a", "b"):
        driver.see(node(name, pods="99").label(host, name), standing(f"{name}1", name, "4"))
        driver.see(pod(f"{name}2", cpu="0").label("app", "x").node(name))
    driver.see(node("c").label(host, "c"), pod("c1", cpu="0").label("app", "x").node("c"))
    names = [f"p{i}" for i in range(6)]
    alone = [pod(name).label("app", "x").pod_anti_affinity(host, {"app": "x"}) for name in names]
    waiting(driver, *alone)
    gone(driver, "a1")
    assert woken(driver, *names) == names[:1]
    driver.cycle(1)
    assert woken(driver, *names) == names[1:]
    driver.cycle()
    assert [driver.told(name).count("attempted") for name in names] == [2] * 6
