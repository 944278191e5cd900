"""Random histories in which policies are replaced and candidates tried: each decision is one policy's, by whose rules
it holds (I6, I9); no pod is lost (I3); the same log gives the same decisions and the same findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, Resource
from policyengine.framework.profile import Profile
from policyengine.framework.status import Code
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import (
    CandidateLoaded,
    CandidateRemoved,
    ComparisonRequested,
    ComparisonTimed,
    CyclesRequested,
    ProfileReplaced,
)
from policyengine.scheduler.rollout import Budget, Mode, RolloutSettings
from tests.scheduler.driver import Driver, Label, Rule, profile
from tests.scheduler.test_histories import NO_FLUSH, assert_nobody_is_lost, newest_first, others, ours
from tests.scheduler.world import OURS, World, replayed

NODES = ("n1", "n2", "n3")
CHANGED = ClusterEventWithHint(ClusterEvent(Resource.NODE, ActionType.ALL, "NodeChanged"))

allowed_nodes = st.sets(st.sampled_from(NODES), min_size=1).map(sorted).map(tuple)
ways = st.sampled_from(
    [
        RolloutSettings(Mode.SHADOW),
        RolloutSettings(Mode.CANARY),
        RolloutSettings(Mode.CANARY, share=0.5),
        RolloutSettings(Mode.CANARY, budget=Budget(unschedulable=0.3, divergence=0.6, least=2)),
    ]
)
rollouts = st.one_of(
    st.tuples(st.just("replace"), allowed_nodes),
    st.tuples(st.just("try_candidate"), allowed_nodes, ways, st.booleans()),
    st.tuples(st.just("end_trial")),
)


class RolloutWorld(World):
    """A naive cluster whose policies say which nodes may be taken."""

    def __init__(self, *, synced: bool = True) -> None:
        self.allowed: dict[str, tuple[str, ...]] = {}
        self.live = self.policy(NODES)
        self.candidate: str | None = None
        super().__init__(Driver(self.live, synced=synced))

    def policy(self, nodes: tuple[str, ...], fails: bool = False) -> Profile:
        digest = f"policy {len(self.allowed)} of {','.join(nodes)}"
        self.allowed[digest] = nodes
        wrong = Code.ERROR if fails else Code.UNSCHEDULABLE
        rule = Rule("only", lambda _, on: None if on in nodes else wrong, [CHANGED], fingerprint=f"{nodes} {wrong}")
        made = profile(gangs=(Label(),), policy_hash=digest, queue=NO_FLUSH, queue_key=newest_first)
        return replace(made, filters=(*made.filters, rule))

    def replace(self, nodes: tuple[str, ...]) -> None:
        self.live = self.policy(nodes)
        self.send(ProfileReplaced(self.live))

    def try_candidate(self, nodes: tuple[str, ...], way: RolloutSettings, fails: bool) -> None:
        made = self.policy(nodes, fails)
        self.candidate = made.policy_hash
        self.send(CandidateLoaded(made, way))

    def end_trial(self) -> None:
        self.candidate = None
        self.send(CandidateRemoved(OURS))

    def cycle(self, count: int) -> None:
        for _ in range(count):
            may_decide = {self.live.policy_hash, self.candidate}
            before = len(self.actions)
            self.send(CyclesRequested(1))
            for action in self.actions[before:]:
                if isinstance(action, Bind):
                    self._held_to(action, may_decide)
            if self.driver.state.has_decided:
                self.send(ComparisonRequested(0.0))
                self.send(ComparisonTimed(0.0))
            if not self.driver.state.ready:
                break

    def _held_to(self, bind: Bind, may_decide: set[str | None]) -> None:
        attempts = [one for one in self.driver.state.timeline(bind.uid) if one.what == "attempted"]
        reserved = [one for one in self.driver.state.timeline(bind.uid) if one.what == "reserved"]
        assert bind.policy_hash in may_decide
        assert bind.node in self.allowed[bind.policy_hash]
        assert attempts[-1].details["policy hash"] == reserved[-1].details["policy hash"] == bind.policy_hash


def run(history: list[tuple[Any, ...]]) -> RolloutWorld:
    world = RolloutWorld()
    for number, name in enumerate(NODES):
        world.set_node(name, 4 + number, cordoned=False)
    for cpu in (1, 2, 3, 4):
        world.create_pod(cpu)
    world.deliver(100)
    world.cycle(2)
    return world.play(history)


@settings(max_examples=25)
@given(st.lists(st.one_of(ours, ours, rollouts), min_size=30, max_size=70), st.booleans())
def test_every_decision_is_one_policys_and_no_pod_is_lost_whatever_is_tried(
    history: list[tuple[Any, ...]], ends: bool
) -> None:
    world = run(history)
    world.replace(NODES)
    if ends:
        world.end_trial()
    else:
        world.try_candidate(NODES, RolloutSettings(Mode.CANARY, share=0.5), False)
    world.settle()
    assert world.overcommitted() == []
    assert len(world.bound_by_us) == len(set(world.bound_by_us))
    assert_nobody_is_lost(world)


@settings(max_examples=8)
@given(st.lists(st.one_of(ours, others, rollouts), min_size=20, max_size=50))
def test_the_same_log_gives_the_same_decisions_and_findings(history: list[tuple[Any, ...]]) -> None:
    world = run(history)
    other = Driver(RolloutWorld(synced=False).live, synced=False)
    assert replayed(world.driver, other) == world.actions
    for name, found in world.driver.state.rollouts.items():
        again = other.state.rollouts[name]
        assert (found.compared, found.by_rule, list(found.samples), found.suspended) == (
            again.compared,
            again.by_rule,
            list(again.samples),
            again.suspended,
        )


@settings(max_examples=10)
@given(st.lists(ours, min_size=20, max_size=50))
def test_a_shadow_changes_no_decision(history: list[tuple[Any, ...]]) -> None:
    without = run(history)
    beside = run([("try_candidate", ("n2",), RolloutSettings(Mode.SHADOW), False), *history])
    # One cycle at a time in both, so that the same pods are popped at the same time.
    assert [a for a in without.actions if isinstance(a, Bind)] == [a for a in beside.actions if isinstance(a, Bind)]
