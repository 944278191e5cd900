"""Random histories of pods with priorities on full nodes: nobody lost (I3), no node overcommitted (I2), and no node
kept clear for a pod that is gone, whatever becomes of the victims (faults.md, 25).

They are played under kube-scheduler's own profile, under a policy that holds pods at Permit, serves tenants by share
and narrows preemption, and under quotas: sums counted exactly at each step (`validate`), no limit exceeded, and nothing
taken by preemption that a quota guarantees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.profile import Profile, QueueSettings
from policyengine.scheduler.actions import Action
from policyengine.scheduler.messages import PodObserved
from tests.scheduler.driver import Driver, deletions, profile
from tests.scheduler.policy_members import policy
from tests.scheduler.world import World, replayed

SOON = QueueSettings(flush_after=60.0)
"""Who waits for a victim that never dies is looked at again soon."""
MEMBERS = """
let team = pod.labels[?"team"].orValue("")
queue { fair by team weight {"a": 3} }
permit "slow" when team == "a" { delay: 3s }
permit "open" when team == "b" { until: !node.unschedulable && node.podCount > 1  timeout: 20s }
preempt { victims: victim.labels[?"team"].orValue("") != "a"  order by victim.createdAt desc  maxVictims: 2 }
on preEnqueue log "{pod.name}"
on reserve when node.free.cpu < 1 log "{node.name} is full"
"""
QUOTAS = """
let team = pod.labels[?"team"].orValue("")
quota "a" when team == "a" { guarantee: {cpu: 3} limit: {cpu: 6} borrow: true }
quota "b" when team == "b" { guarantee: {cpu: 4} }
"""
GUARANTEED, MOST = {"a": 3, "b": 4}, {"a": 6, "b": 4}
"""Cores that are kept for a team, and that it may have: only `a` borrows."""


class TeamWorld(World):
    """Pods have teams; pods of `a` are never preempted."""

    def _take(self, actions: list[Action]) -> None:
        super()._take(actions)
        for asked in deletions(actions):
            assert self.driver.state.view.pods[asked.uid].labels.get("team") != "a", f"{asked.uid} was to stay"


class QuotaWorld(World):
    """Pods have teams, and teams quotas."""

    def move(self, number: int, team: str) -> None:
        """Somebody edits a pod's label."""
        uid = self._pick(number)
        if uid is not None:
            self.pods[uid]["labels"] = {"team": team}
            self._show(uid)

    def used(self, team: str) -> int:
        """What the team's pods with a node ask for, on the server."""
        return sum(pod["cpu"] for pod in self.pods.values() if pod["node"] and pod["labels"].get("team") == team)

    def is_let_by_its_quota(self, pod: dict[str, Any]) -> bool:
        team = pod["labels"].get("team", "")
        return self.used(team) + pod["cpu"] <= MOST.get(team, 1000)

    def _take(self, actions: list[Action]) -> None:
        """By the scheduler's own view, which may be ahead of the server or behind it."""
        super()._take(actions)
        view = self.driver.state.view
        for asked in deletions(actions):
            victim, preemptor = view.pods[asked.uid], view.pods[asked.preemptor]
            team = victim.labels.get("team", "")
            if team in GUARANTEED and preemptor.labels.get("team") != team:
                mates = [pod for pod in view.pods.values() if pod.node_name and pod.labels.get("team") == team]
                gone = {one.uid for one in self.evictions if one.preemptor == asked.preemptor}
                left = sum(pod.requests.cpu // 1000 for pod in mates if pod.uid not in gone)
                assert left >= GUARANTEED[team], f"{victim!r} was taken for {preemptor!r}, {team} is left {left}"


def one(name: str, *values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *values)


NUMBERS = st.integers(0, 7)
BINDINGS = ("succeeds", "succeeds", "refused", "lost and late")
EVICTIONS = ("succeeds", "succeeds", "refused", "lost")


def steps(
    *created: st.SearchStrategy[tuple[Any, ...]], binds: tuple[str, ...] = BINDINGS, evicts: tuple[str, ...] = EVICTIONS
) -> st.SearchStrategy[list[Any]]:
    """A history of these pods."""
    others = (
        one("delete_pod", NUMBERS, st.booleans()),
        st.tuples(st.sampled_from(["deliver", "deliver", "cycle", "cycle"]), st.just(100)),
        one("cycle", st.integers(1, 3)),
        one("wait", st.sampled_from([0.3, 1.0, 3.0, 7.0, 330.0])),
        one("answer_bind", st.sampled_from(binds)),
        one("answer_eviction", st.sampled_from(evicts)),
        st.tuples(st.sampled_from(["write_status", "write_status", "kubelet", "land_late"])),
        one("answer_read", st.booleans()),
        one("set_node", st.sampled_from(["n1", "n2"]), st.integers(4, 6), st.booleans()),
    )
    return st.lists(st.one_of(*created, *others), min_size=20, max_size=60)


PLAIN = steps(
    one("create_important_pod", st.integers(1, 4), st.integers(0, 3)),
    one("create_important_pod", st.integers(3, 6), st.integers(1, 3)),
    one("create_important_pod", st.just(3), st.integers(0, 1)),
    binds=(*BINDINGS, "asks"),
    evicts=(*EVICTIONS, "never dies"),
)
OF_TEAMS = steps(
    *[one("create_pod_of", st.sampled_from("abc"), st.integers(1, 3), st.integers(0, 2))] * 2, binds=(*BINDINGS, "asks")
)
UNDER_QUOTAS = steps(
    *[one("create_pod_of", st.sampled_from("aabc"), st.integers(1, 3), st.integers(0, 3))] * 2,
    one("move", NUMBERS, st.sampled_from("aabc")),
    one("finish_pod", NUMBERS),
)


def run(world: World, nodes: tuple[int, int], pods: Iterable[tuple[str, int]], history: Iterable[Any]) -> World:
    """The history, once these pods stand on the nodes."""
    for number, cpu in enumerate(nodes, start=1):
        world.set_node(f"n{number}", cpu, cordoned=False)
    for team, cpu in pods:
        world.create_pod_of(team, cpu, 0)
    world.deliver(100)
    world.cycle(100)
    return world.play(history)


def plain(history: Iterable[Any]) -> World:
    return run(World(Driver(profile(queue=SOON))), (4, 5), [("", 2), ("", 2), ("", 3), ("", 2)], history)


def of_teams(history: Iterable[Any]) -> World:
    return run(TeamWorld(Driver(serving(MEMBERS))), (5, 5), [("a", 2), ("b", 2), ("c", 2)], history)


def under_quotas(history: Iterable[Any]) -> QuotaWorld:
    world = QuotaWorld(Driver(serving(QUOTAS)))
    run(world, (4, 5), [("a", 2), ("a", 2), ("b", 2), ("c", 2)], history)
    return world


def serving(members: str) -> Profile:
    return replace(policy(members), queue=SOON)


def settled(world: World) -> World:
    for name in ("n1", "n2"):
        world.set_node(name, 6, cordoned=False)
    world.settle(rounds=24)
    assert world.overcommitted() == []
    assert len(world.bound_by_us) == len(set(world.bound_by_us))
    return world


def assert_no_other_waits(world: World, may_wait: Callable[[dict[str, Any]], bool], *places: str) -> None:
    state = world.driver.state
    for uid, pod in world.waiting().items():
        told = f"{uid} is {state.place(uid)}: {[str(line) for line in state.timeline(uid)]}"
        assert state.place(uid) in ("unschedulable", *places), told
        assert may_wait(pod) or not world.fits_somewhere(pod), told


@settings(max_examples=24)
@given(PLAIN)
def test_nobody_is_lost_nothing_overcommitted_and_no_nomination_outlives_its_pod(history: list[Any]) -> None:
    world = settled(plain(history))
    assert_no_other_waits(world, lambda pod: False)
    assert world.driver.state.view.nominated == {}
    assert not any(pod["nominated"] for pod in world.waiting().values())


@settings(max_examples=16)
@given(OF_TEAMS)
def test_nobody_is_lost_who_waits_at_permit_or_may_not_be_preempted(history: list[Any]) -> None:
    world = settled(of_teams(history))
    world.wait(25.0)  # who came to Permit last has been there long enough
    world.drain()
    assert world.overcommitted() == []
    # Those of `b` are also refused at Permit.
    assert_no_other_waits(world, lambda pod: pod["labels"]["team"] == "b", "backoff", "active", "waiting at permit")


@settings(max_examples=16)
@given(UNDER_QUOTAS)
def test_sums_of_quotas_stay_exact_and_nobody_is_lost(history: list[Any]) -> None:
    world = under_quotas(history)
    settled(world)
    assert_no_other_waits(world, lambda pod: not world.is_let_by_its_quota(pod))
    assert world.driver.state.view.nominated == {}


@settings(max_examples=12)
@given(UNDER_QUOTAS)
def test_no_quota_is_exceeded_by_what_we_bind(history: list[Any]) -> None:
    world = under_quotas(step for step in history if step[0] != "move")
    world.settle(rounds=24)
    assert {team: world.used(team) for team in MOST if world.used(team) > MOST[team]} == {}


@pytest.mark.parametrize(
    ("play", "steps", "serves"),
    [(plain, PLAIN, profile(queue=SOON)), (of_teams, OF_TEAMS, serving(MEMBERS))],
    ids=["plain", "of teams"],
)
@settings(max_examples=8)
@given(st.data())
def test_the_same_log_gives_the_same_actions(
    play: Callable[[Any], World], steps: st.SearchStrategy[Any], serves: Profile, data: st.DataObject
) -> None:
    world = play(data.draw(steps))
    assert replayed(world.driver, Driver(serves, synced=False)) == world.actions


def test_a_pod_that_comes_back_under_its_victim_s_priority_does_not_take_the_room() -> None:
    world = World(Driver())
    world.set_node("n1", 4, cordoned=False)
    world.create_pod(4)
    world.settle()
    world.create_important_pod(4, 2)
    world.deliver(100)
    world.cycle(100)
    world.answer_eviction("succeeds")
    world.create_important_pod(3, 0)
    world.settle()
    assert {uid for uid, pod in world.pods.items() if pod["node"]} == {"p2"}
    assert any(isinstance(message, PodObserved) for _, message in world.driver.log)
