"""Random histories under quotas: sums counted exactly at each step (`validate`), no limit exceeded, nobody lost, and
nothing taken by preemption that a quota guarantees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.scheduler.actions import Action, DeleteVictim
from tests.scheduler.driver import Driver
from tests.scheduler.policy_members import policy
from tests.scheduler.test_preemption_histories import SOON, PreemptingWorld

GUARANTEED = {"a": 3, "b": 4}
LIMIT = {"a": 6}
BORROWS = {"a"}
MEMBERS = """
let team = pod.labels[?"team"].orValue("")
quota "a" when team == "a" { guarantee: {cpu: 3} limit: {cpu: 6} borrow: true }
quota "b" when team == "b" { guarantee: {cpu: 4} }
"""


class QuotaWorld(PreemptingWorld):
    """Pods have teams."""

    def move(self, number: int, team: str) -> None:
        """Somebody edits a pod's label."""
        uid = self._pick(number)
        if uid is not None:
            self.pods[uid]["labels"] = {"team": team}
            self._show(uid)

    def used(self, team: str, but: str = "") -> int:
        """What the team's pods with a node ask for, on the server."""
        placed = (pod for uid, pod in self.pods.items() if pod["node"] and uid != but)
        return sum(pod["cpu"] for pod in placed if pod["labels"].get("team") == team)

    def is_let_by_its_quota(self, pod: dict[str, Any]) -> bool:
        team = pod["labels"].get("team", "")
        used = self.used(team) + pod["cpu"]
        most = LIMIT.get(team, 1000) if team in BORROWS else GUARANTEED.get(team, 1000)
        return used <= most

    def _take(self, actions: list[Action]) -> None:
        super()._take(actions)
        for asked in (action for action in actions if isinstance(action, DeleteVictim)):
            self.check_guarantee(asked)

    def check_guarantee(self, asked: DeleteVictim) -> None:
        """By the scheduler's own view, which may be ahead of the server or behind it."""
        view = self.driver.state.view
        victim, preemptor = view.pods[asked.uid], view.pods[asked.preemptor]
        team = victim.labels.get("team", "")
        if team in GUARANTEED and preemptor.labels.get("team") != team:
            mates = [pod for pod in view.pods.values() if pod.node_name and pod.labels.get("team") == team]
            gone = {one.uid for one in self.evictions if one.preemptor == asked.preemptor}
            left = sum(pod.requests.cpu // 1000 for pod in mates if pod.uid not in gone)
            assert left >= GUARANTEED[team], f"{victim!r} was taken for {preemptor!r}, {team} is left {left}"


NUMBERS = st.integers(0, 7)
TEAMS = st.sampled_from(["a", "a", "b", "c"])
steps = st.one_of(
    st.tuples(st.just("create_pod_of"), TEAMS, st.integers(1, 3), st.integers(0, 3)),
    st.tuples(st.just("create_pod_of"), TEAMS, st.integers(1, 3), st.integers(0, 3)),
    st.tuples(st.just("move"), NUMBERS, TEAMS),
    st.tuples(st.just("delete_pod"), NUMBERS, st.booleans()),
    st.tuples(st.just("finish_pod"), NUMBERS),
    st.tuples(st.sampled_from(["deliver", "deliver", "cycle", "cycle"]), st.just(100)),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 7.0, 330.0])),
    st.tuples(st.just("answer_bind"), st.sampled_from(["succeeds", "succeeds", "refused", "lost and late"])),
    st.tuples(st.just("answer_eviction"), st.sampled_from(["succeeds", "succeeds", "refused", "lost"])),
    st.tuples(st.sampled_from(["write_status", "write_status", "kubelet", "land_late"])),
    st.tuples(st.just("answer_read"), st.booleans()),
    st.tuples(st.just("set_node"), st.sampled_from(["n1", "n2"]), st.integers(4, 6), st.booleans()),
)


def run(history: list[tuple[Any, ...]], moves: bool = True) -> QuotaWorld:
    world = QuotaWorld(Driver(replace(policy(MEMBERS), queue=SOON)))
    for number, name in enumerate(["n1", "n2"]):
        world.set_node(name, 4 + number, cordoned=False)
    for team, cpu in (("a", 2), ("a", 2), ("b", 2), ("c", 2)):
        world.create_pod_of(team, cpu, 0)
    world.deliver(100)
    world.cycle(100)
    return world.play(step for step in history if moves or step[0] != "move")


@settings(max_examples=30, deadline=None)
@given(st.lists(steps, min_size=20, max_size=60))
def test_sums_stay_exact_and_nobody_is_lost(history: list[Any]) -> None:
    world = run(history)
    for name in ("n1", "n2"):
        world.set_node(name, 6, cordoned=False)
    world.settle()
    assert world.overcommitted() == []
    state = world.driver.state
    for uid, pod in world.waiting().items():
        assert state.place(uid) == "unschedulable", f"{uid} is {state.place(uid)}"
        lets = world.is_let_by_its_quota(pod) and world.fits_somewhere(pod)
        assert not lets, f"{uid} fits and waits: {[str(line) for line in state.timeline(uid)]}"
    assert state.view.nominated == {}


@settings(max_examples=20, deadline=None)
@given(st.lists(steps, min_size=20, max_size=60))
def test_no_quota_is_exceeded_by_what_we_bind(history: list[Any]) -> None:
    world = run(history, moves=False)
    world.settle()
    assert world.used("a") <= LIMIT["a"]
    assert world.used("b") <= GUARANTEED["b"]
