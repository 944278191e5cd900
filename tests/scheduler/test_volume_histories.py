"""Random histories with volumes: none is taken twice, no pod is bound before its claims are, none is lost."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from policyengine.framework.profile import QueueSettings
from tests.cluster.view_dump import assumption_owners
from tests.scheduler.driver import Driver, profile
from tests.scheduler.volume_world import MADE, STATIC, VolumeWorld
from tests.scheduler.world import replayed

NODES = st.sampled_from(["n1", "n2", "n3"])
VOLUMES = st.sampled_from(["v1", "v2", "v3"])
CLAIMS = st.lists(st.sampled_from([*STATIC, *MADE]), min_size=1, max_size=2, unique=True)

with_storage = st.one_of(
    st.tuples(st.just("create_pod_with"), st.integers(1, 2), CLAIMS),
    st.tuples(st.just("create_pod_with"), st.integers(1, 2), CLAIMS),
    st.tuples(st.just("delete_pod"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("touch_pod"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("set_volume"), VOLUMES, st.sampled_from(["", "n1", "n2"])),
    st.tuples(st.just("touch_volume"), VOLUMES),
    st.tuples(st.just("control")),
    st.tuples(st.just("provision"), st.booleans()),
    st.tuples(st.sampled_from(["deliver", "deliver_storage"]), st.integers(1, 4)),
    st.tuples(st.sampled_from(["deliver", "deliver_storage", "cycle"]), st.just(100)),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 7.0, 700.0])),
    st.tuples(st.just("answer_bind"), st.sampled_from(["succeeds", "asks", "refused", "lost", "lost and landed"])),
    st.tuples(
        st.just("answer_patch"),
        st.sampled_from(["made", "made", "made", "refused", "overloaded", "lost and landed", "lost and late"]),
    ),
    st.tuples(st.just("land_late")),
    st.tuples(st.just("answer_read"), st.booleans()),
)
with_nodes = st.one_of(
    st.tuples(st.just("set_node"), NODES, st.integers(0, 4), st.booleans()),
    st.tuples(st.just("delete_node"), NODES),
    st.tuples(st.just("bind_by_hand"), st.integers(0, 5), NODES),
)


def policy():
    """Only events wake a pod, so that a wake-up that is missing shows."""
    return profile(policy_hash="one", queue=QueueSettings(flush_after=1e9))


def run(history) -> VolumeWorld:
    world = VolumeWorld(Driver(policy()))
    for name in ("n1", "n2", "n3"):
        world.set_node(name, 4, cordoned=False)
    world.set_volume("v1", "n1")
    world.deliver(100)
    world.deliver_storage(100)
    for step, *values in history:
        if step == "create_pod_with":
            world.create_pod_with(values[0], *values[1])
        else:
            getattr(world, step)(*values)
    return world


def assert_nothing_is_lost(world: VolumeWorld) -> None:
    state = world.driver.state
    assert {uid: state.place(uid) for uid in world.waiting()} == dict.fromkeys(world.waiting(), "unschedulable")
    anew = [
        str(action) for action in world.shown_to(Driver(policy())) if type(action).__name__ in ("Bind", "PatchObject")
    ]
    assert anew == [], {uid: [str(line) for line in state.timeline(uid)] for uid in world.waiting()}
    assert assumption_owners(state.view) == set()


BOUND_ELSEWHERE = [
    ("set_volume", "v2", "n2"),
    ("create_pod_with", 2, ["b", "x"]),
    ("deliver", 2),
    ("delete_pod", 2, False),
    ("create_pod_with", 2, ["a"]),
    ("deliver_storage", 4),
    ("create_pod_with", 2, ["y", "b"]),
    ("cycle", 100),
    ("deliver", 4),
    ("cycle", 100),
]
"""The patch of a pod that is gone lands: the claim is bound to another volume than the one its next pod takes."""


@settings(max_examples=40)
@example(BOUND_ELSEWHERE)
@given(st.lists(with_storage, min_size=30, max_size=70))
def test_no_volume_is_taken_twice_and_no_pod_lost_whatever_becomes_of_the_patches(history):
    world = run(history)
    world.settle()
    assert world.taken_twice == []
    assert world.bound_too_early == []
    assert world.overcommitted() == []
    assert_nothing_is_lost(world)


@settings(max_examples=30)
@given(st.lists(st.one_of(with_storage, with_storage, with_nodes), min_size=30, max_size=70))
def test_no_pod_is_lost_when_nodes_change_and_others_bind_too(history):
    world = run(history)
    for name in ("n1", "n2", "n3"):
        world.set_node(name, 4, cordoned=False)
    world.settle()
    assert world.taken_twice == []
    assert_nothing_is_lost(world)


@settings(max_examples=10)
@given(st.lists(st.one_of(with_storage, with_nodes), min_size=20, max_size=50))
def test_the_same_log_gives_the_same_actions(history):
    world = run(history)
    assert replayed(world.driver, Driver(policy(), synced=False)) == world.actions
