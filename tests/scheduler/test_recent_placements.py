"""What is kept of the decisions taken last: what was weighed, by which policy, after how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from policyengine.framework.scoring import Choice
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.extender import Extender
from policyengine.scheduler.messages import BindFailed, BindFailure, CandidateLoaded, PodDeleted, ProfileReplaced
from policyengine.scheduler.pod_timeline import PODS, Placement, RecentPlacements, RoomMade
from policyengine.scheduler.rollout import Mode, RolloutSettings
from tests.scheduler.asking import Asking
from tests.scheduler.driver import NAME, START, Driver, Label, binds, node, pod, profile

TASTE = """policy "taste" {
  score "first" weight 3 = node.name == "n1" ? 40 : node.name == "n2" ? 30 : 0
  score "against" weight 1 = node.name == "n1" ? 100 : 0
}"""


def policy(text: str, **changes: Any) -> Any:
    return replace(compile_policy(text), scheduler_name=NAME, **changes)


def kept(driver: Driver, uid: str) -> Placement:
    found = driver.state.placement(uid)
    assert found is not None
    return found


def of_rules(placement: Placement) -> list[dict[str, int]]:
    """The weighted scores by what is no in-tree plugin, node by node."""
    rules = ("first", "against", "(extenders)")
    return [{name: of[name] for name in rules if name in of} for of in placement.choice.weighted().values()]


def test_the_chosen_node_and_the_runners_up_are_kept_by_rule() -> None:
    driver = Driver(policy(TASTE)).showing(*(node(name) for name in ("n1", "n2", "n3", "n4")), pod("p"))
    assert binds(driver.cycle()) == {"p": "n1"}
    found = kept(driver, "p")
    assert (found.policy, found.policy_hash) == ("taste", driver.state.profiles[0].policy_hash)
    assert (found.choice.how, found.choice.nodes, found.choice.feasible, found.choice.refused) == ("scored", 4, 4, ())
    assert found.choice.best[:2] == ("n1", "n2") and found.choice.best[2] in ("n3", "n4")
    assert of_rules(found) == [{"first": 120, "against": 100}, {"first": 90, "against": 0}, {"first": 0, "against": 0}]
    assert found.choice.weighted()["n1"]["TaintToleration"] == 300


def test_the_wait_and_the_attempts_count_from_the_first_time_in_the_queue() -> None:
    driver = Driver().showing(node("n1", cpu="1"), pod("p", cpu="2"))
    driver.cycle()
    driver.now += 40
    driver.see(node("n1", cpu="2"))
    driver.wait(10)
    assert binds(driver.cycle()) == {"p": "n1"}
    found = kept(driver, "p")
    assert (found.queued_at, found.at, found.attempt, found.choice.how) == (START, START + 50, 2, "only")


def test_who_refused_the_other_nodes_is_counted() -> None:
    driver = Driver().showing(node("n1"), node("n2", cpu="1"), node("n3", cpu="1").unschedulable(), pod("p", cpu="2"))
    driver.cycle()
    assert kept(driver, "p").choice == Choice(
        "only", 3, 1, (("NodeUnschedulable", 1), ("NodeResourcesFit", 2)), ("n1",), (), ()
    )


def test_room_that_was_made_is_kept_with_the_victims_and_why_these() -> None:
    driver = Driver().showing(node("n1"), node("n2"), pod("low", cpu="4").node("n1"))
    driver.see(pod("mid", cpu="4").priority(5).node("n2"), pod("high", cpu="4").priority(10))
    driver.cycle()
    driver.send(PodDeleted("default", "low", "low"))
    driver.wait(20)
    assert binds(driver.cycle()) == {"high": "n1"}
    found = kept(driver, "high")
    assert (found.choice.how, found.choice.best, found.choice.feasible) == ("nominated", ("n1",), 1)
    why = "of 2 nodes that could be cleared 1 is left by the lowest priority of the most important victim"
    assert found.room == RoomMade("n1", ("default/low",), why)
    told = next(line for line in driver.state.timeline("high") if line.what == "preempting")
    assert told.details == {"node": "n1", "victims": "default/low", "why": why}


def test_extenders_scores_are_a_share_of_their_own() -> None:
    driver = Asking(Extender("http://x"), profiles=(policy(TASTE),))
    driver.see(node("n1"), node("n2"), pod("p"))
    driver.cycle()
    assert binds(driver.answer(scores={"n2": 1000})) == {"p": "n2"}
    assert kept(driver, "p").choice.best == ("n2", "n1")
    assert of_rules(kept(driver, "p")) == [
        {"first": 90, "against": 0, "(extenders)": 1000},
        {"first": 120, "against": 100, "(extenders)": 0},
    ]


def test_each_member_of_a_gang_is_weighed_beside_those_placed_before_it() -> None:
    driver = Driver(profile(gangs=(Label(),))).showing(node("n1"), node("n2"))
    driver.see(*(pod(name, cpu="2").label("gang", "g").label("min", "2") for name in "ab"))
    placed = binds(driver.cycle())
    first, second = (kept(driver, name).choice.weighted() for name in "ab")
    assert list(first) == [placed["a"], placed["b"]] and list(second) == [placed["b"], placed["a"]]
    assert sum(second[placed["a"]].values()) < sum(first[placed["a"]].values())


def test_a_gang_that_is_packed_says_so() -> None:
    driver = Driver(profile(gangs=(Label(),))).showing(node("n1", cpu="3"), node("n2", cpu="2"))
    driver.see(*(pod(name, cpu=cpu).label("gang", "g").label("min", "2") for name, cpu in (("a", "2"), ("b", "3"))))
    assert binds(driver.cycle()) == {"a": "n2", "b": "n1"}
    assert [kept(driver, name).choice.how for name in "ab"] == ["packed", "packed"]


def test_a_decision_keeps_the_policy_that_made_it_be_it_a_canary() -> None:
    driver = Driver(policy(TASTE)).showing(node("n1"), node("n2"), pod("p"))
    driver.cycle()
    driver.send(ProfileReplaced(policy(TASTE.replace("taste", "other"))))
    assert kept(driver, "p").policy == "taste"
    driver.send(CandidateLoaded(policy(TASTE.replace("taste", "new")), RolloutSettings(Mode.CANARY)))
    driver.see(pod("q"))
    driver.cycle()
    assert kept(driver, "q").policy == "new"


def test_the_last_decision_of_a_pod_counts_and_a_namesake_has_its_own() -> None:
    driver = Driver().showing(node("n1"), pod("p"))
    driver.cycle()
    driver.send(BindFailed("p", BindFailure.REFUSED, "no"))
    driver.wait(30)
    assert binds(driver.cycle()) == {"p": "n1"}
    assert (kept(driver, "p").at, kept(driver, "p").attempt) == (START + 30, 2)
    driver.see(pod("p").uid("another"))
    driver.cycle()
    assert (kept(driver, "another").attempt, kept(driver, "p").attempt) == (1, 2)


def record(number: int) -> Placement:
    choice = Choice("only", 1, 1, (), (f"node-{number}",))
    return Placement(float(number), 0.0, 1, "p", "hash", choice, None)


def test_the_oldest_go_first_and_a_pod_that_is_placed_again_is_no_longer_among_them() -> None:
    placements = RecentPlacements(3)
    for number, uid in enumerate("abcad"):
        placements.note(uid, record(number))
    assert [(uid, found.at) for uid, found in placements.newest_first()] == [("d", 4.0), ("a", 3.0), ("c", 2.0)]
    assert placements.of("b") is None


def test_as_many_are_kept_as_timelines() -> None:
    placements = RecentPlacements()
    for number in range(PODS + 1):
        placements.note(f"uid {number}", record(number))
    assert (placements.of("uid 0"), placements.of("uid 1")) == (None, record(1))


def test_decisions_of_many_scores_are_kept_in_smaller_numbers() -> None:
    def placement(scores: int) -> Placement:
        choice = Choice("scored", 2, 2, (), ("n1",), (("first", 1),) * scores, (0,) * scores)
        return Placement(START, START, 1, "taste", "hash", choice, None)

    placements = RecentPlacements(most=100, most_parts=90)
    for number in range(10):
        placements.note(f"pod-{number}", placement(29))
    assert [uid for uid, _ in placements.newest_first()] == ["pod-9", "pod-8", "pod-7"]
    placements.note("pod-8", placement(9))
    placements.note("pod-10", placement(9))
    assert [uid for uid, _ in placements.newest_first()] == ["pod-10", "pod-8", "pod-9", "pod-7"]
