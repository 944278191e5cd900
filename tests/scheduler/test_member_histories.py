"""Histories under a policy that holds pods at Permit, serves tenants by share and narrows preemption: nobody is lost
(I3), no node overcommitted (I2), and the same log gives the same actions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.profile import Profile
from policyengine.scheduler.actions import DeleteVictim
from tests.scheduler.driver import Driver
from tests.scheduler.policy_members import policy
from tests.scheduler.test_preemption_histories import SOON, PreemptingWorld
from tests.scheduler.world import replayed

MEMBERS = """
let team = pod.labels[?"team"].orValue("")
queue { fair by team weight {"a": 3} }
permit "slow" when team == "a" { delay: 3s }
permit "open" when team == "b" { until: !node.unschedulable && node.podCount > 1  timeout: 20s }
preempt { victims: victim.labels[?"team"].orValue("") != "a"  order by victim.createdAt desc  maxVictims: 2 }
on preEnqueue log "{pod.name}"
on reserve when node.free.cpu < 1 log "{node.name} is full"
"""


class TeamWorld(PreemptingWorld):
    """Pods have teams; pods of `a` are never preempted."""

    def _take(self, actions: list[Any]) -> None:
        super()._take(actions)
        for asked in (action for action in actions if isinstance(action, DeleteVictim)):
            assert self.driver.state.view.pods[asked.uid].labels.get("team") != "a", f"{asked.uid} was to stay"


def serving() -> Profile:
    return replace(policy(MEMBERS), queue=SOON)


NUMBERS = st.integers(0, 7)
TEAMS = st.sampled_from(["a", "b", "c"])
steps = st.one_of(
    st.tuples(st.just("create_pod_of"), TEAMS, st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.just("create_pod_of"), TEAMS, st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.just("delete_pod"), NUMBERS, st.booleans()),
    st.tuples(st.sampled_from(["deliver", "deliver", "cycle", "cycle"]), st.just(100)),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 3.0, 7.0, 330.0])),
    st.tuples(st.just("answer_bind"), st.sampled_from(["succeeds", "succeeds", "asks", "refused", "lost and late"])),
    st.tuples(st.just("answer_eviction"), st.sampled_from(["succeeds", "succeeds", "refused", "lost"])),
    st.tuples(st.sampled_from(["write_status", "write_status", "kubelet", "land_late"])),
    st.tuples(st.just("answer_read"), st.booleans()),
    st.tuples(st.just("set_node"), st.sampled_from(["n1", "n2"]), st.integers(4, 6), st.booleans()),
)


def run(history: list[tuple[Any, ...]]) -> TeamWorld:
    world = TeamWorld(Driver(serving()))
    for name in ("n1", "n2"):
        world.set_node(name, 5, cordoned=False)
    for team in ("a", "b", "c"):
        world.create_pod_of(team, 2, 0)
    world.deliver(100)
    world.cycle(100)
    return world.play(history)


@settings(max_examples=30, deadline=None)
@given(st.lists(steps, min_size=20, max_size=60))
def test_nobody_is_lost_and_nothing_is_overcommitted(history: list[Any]) -> None:
    world = run(history)
    for name in ("n1", "n2"):
        world.set_node(name, 6, cordoned=False)
    world.settle()
    world.wait(25.0)  # who came to Permit last has been there long enough
    world._drain()
    assert world.overcommitted() == []
    state = world.driver.state
    for uid, pod in world.waiting().items():
        assert state.place(uid) in ("unschedulable", "backoff", "active", "waiting at permit"), state.place(uid)
        if pod["labels"]["team"] != "b":  # those of `b` are also refused at Permit
            assert not world.fits_somewhere(pod), f"{uid} fits and waits: {[str(line) for line in state.timeline(uid)]}"


@settings(max_examples=15, deadline=None)
@given(st.lists(steps, min_size=20, max_size=60))
def test_the_same_log_gives_the_same_actions(history: list[Any]) -> None:
    world = run(history)
    assert replayed(world.driver, Driver(serving(), synced=False)) == world.actions
