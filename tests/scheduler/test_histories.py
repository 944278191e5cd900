"""Random histories: no pod lost (I3), no node overcommitted by us (I2), the same log the same actions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.profile import QueueSettings
from policyengine.scheduler.messages import ProfileRemoved, ProfileReplaced
from tests.scheduler.driver import Driver, Label, profile
from tests.scheduler.world import OURS, World, replayed

NODES = st.sampled_from(["n1", "n2", "n3"])
NUMBERS = st.integers(0, 5)

ours = st.one_of(
    st.tuples(st.just("create_pod"), st.integers(1, 4), st.sampled_from(["", "", "g", "h"]), st.booleans()),
    st.tuples(st.just("create_pod"), st.integers(1, 4)),
    st.tuples(st.just("delete_pod"), NUMBERS, st.booleans()),
    st.tuples(st.just("finish_pod"), NUMBERS),
    st.tuples(st.just("touch_pod"), NUMBERS, st.booleans()),
    st.tuples(st.just("deliver"), st.integers(1, 4)),
    st.tuples(st.sampled_from(["deliver", "deliver", "cycle"]), st.just(100)),
    st.tuples(st.just("cycle"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 7.0, 330.0])),
    st.tuples(
        st.just("answer_bind"),
        st.sampled_from(["succeeds", "asks", "refused", "overloaded", "lost", "lost and landed", "lost and late"]),
    ),
    st.tuples(st.just("land_late")),
    st.tuples(st.just("answer_read"), st.booleans()),
)
reloads = st.tuples(st.just("reload"), st.booleans())
others = st.one_of(
    st.tuples(st.just("set_node"), NODES, st.integers(0, 6), st.booleans()),
    st.tuples(st.just("delete_node"), NODES),
    st.tuples(st.just("bind_by_hand"), NUMBERS, NODES),
)


NO_FLUSH = QueueSettings(flush_after=1e9)
"""Only events wake a pod, so that a wake-up that is missing shows."""


def newest_first(pod, queued_at):
    """An order in which a pod that comes back finds others in its place."""
    return (-int(pod.uid[1:]),)


def policy(version: int = 1):
    return profile(gangs=(Label(),), policy_hash=f"version {version}", queue=NO_FLUSH, queue_key=newest_first)


def run(history) -> World:
    world = World(Driver(policy()))
    for number, name in enumerate(["n1", "n2", "n3"]):
        world.set_node(name, 4 + number, cordoned=False)
    for cpu in (1, 2, 3, 4):
        world.create_pod(cpu)
    world.deliver(100)
    world.cycle(2)
    version, is_served = 1, True
    for step, *values in history:
        if step == "reload":
            version, is_served = version + 1, values[0]
            world.send(ProfileReplaced(policy(version)) if is_served else ProfileRemoved(OURS))
        else:
            getattr(world, step)(*values)
    if not is_served:
        world.send(ProfileReplaced(policy(version + 1)))
    return world


def assert_nobody_is_lost(world: World) -> None:
    state = world.driver.state
    for uid, pod in world.waiting().items():
        place = state.place(uid)
        gang = pod["labels"].get("gang")
        if pod["gated"]:
            assert place == "gated"
        elif gang and world.gang_size(gang) < 2:
            assert place == "held"
        else:
            assert place == "unschedulable", f"{uid} is {place}"
            assert not world.must_fit(uid), f"{uid} fits and waits: {[str(line) for line in state.timeline(uid)]}"


@settings(max_examples=30)
@given(st.lists(ours, min_size=30, max_size=70))
def test_no_pod_is_lost_and_no_node_is_overcommitted_whatever_becomes_of_the_bindings(history):
    world = run(history)
    assert world.overcommitted() == []
    world.settle()
    assert world.overcommitted() == []
    assert len(world.bound_by_us) == len(set(world.bound_by_us))
    assert_nobody_is_lost(world)


@settings(max_examples=30)
@given(st.lists(st.one_of(ours, others), min_size=30, max_size=70))
def test_no_pod_is_lost_when_nodes_change_and_others_bind_too(history):
    world = run(history)
    for name in ("n1", "n2"):
        world.set_node(name, 3, cordoned=False)
    world.settle()
    assert_nobody_is_lost(world)


@settings(max_examples=20)
@given(st.lists(st.one_of(ours, ours, reloads), min_size=30, max_size=70))
def test_no_pod_is_lost_when_policies_come_and_go(history):
    world = run(history)
    assert world.overcommitted() == []
    world.settle()
    assert_nobody_is_lost(world)


@settings(max_examples=10)
@given(st.lists(st.one_of(ours, others, reloads), min_size=20, max_size=50))
def test_the_same_log_gives_the_same_actions(history):
    world = run(history)
    assert replayed(world.driver, Driver(policy(), synced=False)) == world.actions
