"""DynamicResources from Reserve to Bind: in memory, in the writes, and through the scheduler."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from policyengine.cluster.pod_info import PodInfo
from policyengine.scheduler.actions import Action
from policyengine.scheduler.messages import BindFailed, BindFailure, ObjectPatched, ObjectPatchFailed
from tests.builders import make_pod
from tests.plugins.devices.devices import (
    NOT_HERE,
    World,
    allocated,
    cel,
    claim,
    device,
    device_class,
    exactly,
    resource_slice,
    using,
)
from tests.scheduler.driver import Driver, binds, conditions, node
from tests.scheduler.storage import patches, seen

FINALIZER = "resource.kubernetes.io/delete-protection"


def world_of_one(*claims: Any) -> World:
    return World(resource_slice("g", node="n0"), *(claims or (claim(),)))


def info(pod: Any, uid: str) -> PodInfo:
    return pod.uid(uid).info()


# --- in memory ---------------------------------------------------------------------------------------------


def test_a_reserved_device_is_taken_until_it_is_given_back() -> None:
    world = world_of_one(claim(), claim(name="d"))
    first = info(using("c"), "first")
    assert world.reserve(pod=first) == [[("r", "g")]]
    assert world.fits(using("d")) == []
    world.plugin.unreserve(first, "n0")
    assert world.fits(using("d")) == ["n0"]
    world.plugin.unreserve(first, "n0")  # again: nothing happens


def test_another_pod_of_a_claim_goes_where_it_is_being_allocated_and_writes_the_same() -> None:
    world = world_of_one()
    first, second = info(using("c"), "first"), info(using("c"), "second")
    world.reserve(pod=first)
    assert world.evaluate(second) == {"n0": "", "n1": NOT_HERE}
    assert world.reserve(pod=second) == [[("r", "g")]]
    plans = [world.plugin.plan(pod, "n0", world.view.snapshot())[1] for pod in (first, second)]
    (finalizer, own), (_, other) = (plan.patches for plan in plans)
    assert finalizer.strategic and own.strategic and other.strategic
    assert own.patch["status"]["allocation"] == other.patch["status"]["allocation"]  # type: ignore[index]
    assert other.patch["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "second"}]  # type: ignore[index]


def test_a_claim_that_pods_share_stays_taken_until_the_last_of_them_gives_it_back() -> None:
    world = world_of_one(claim(), claim(name="d"))
    first, second = info(using("c"), "first"), info(using("c"), "second")
    world.reserve(pod=first)
    world.reserve(pod=second)
    world.plugin.unreserve(first, "n0")
    assert world.fits(using("d")) == []
    assert world.evaluate(info(using("c"), "third")) == {"n0": "", "n1": NOT_HERE}
    world.plugin.unreserve(second, "n0")
    assert world.fits(using("d")) == ["n0"]


def test_what_two_pods_share_of_a_device_counts_once_before_and_after_it_is_seen() -> None:
    half = exactly(capacity={"requests": {"memory": "5Gi"}})
    world = World(
        resource_slice({**device("g", memory="10Gi"), "allowMultipleAllocations": True}, node="n0"),
        claim(half),
        claim(half, name="d"),
    )
    for uid in ("first", "second"):
        world.reserve(pod=info(using("c"), uid))
    assert world.fits(using("d")) == ["n0"]
    (_, status) = world.plugin.plan(info(using("c"), "first"), "n0", world.view.snapshot())[1].patches
    written: Any = {**status.patch["status"]}  # type: ignore[dict-item]
    world.see(claim(half, version=2, status=written))
    assert [one.pod_uid for one in world.view.pending_claims] == ["second"]
    assert world.fits(using("d")) == ["n0"]


def test_no_claim_gets_more_users_than_it_may_have_counting_those_on_their_way() -> None:
    world = world_of_one(claim(status=allocated("g", users=tuple(f"u{number}" for number in range(255)))))
    world.reserve(pod=info(using("c"), "first"))
    assert world.evaluate(info(using("c"), "second")) == "resourceclaim in use"


def test_a_claim_on_its_way_to_another_pod_is_not_deallocated_for_one() -> None:
    world = World(resource_slice("g", node="n0"), resource_slice("g", node="n1"), claim(status=allocated("g")))
    second = info(using("c"), "second")
    found = world.evaluator.filter(second, world.view.snapshot())
    assert len(world.plugin.post_filter(second, found, world.evaluator, world.view).patches) == 1
    world.reserve(pod=info(using("c"), "first"))
    assert world.plugin.post_filter(second, found, world.evaluator, world.view).patches == ()


def test_a_reservation_ends_when_the_claim_is_seen_as_it_was_to_be() -> None:
    world = world_of_one()
    world.reserve(pod=info(using("c"), "first"))
    world.see(claim(version=2))  # a finalizer was added, say
    assert len(list(world.view.pending_claims)) == 1
    world.see(claim(version=3, status=allocated("g", users=("first",))))
    assert list(world.view.pending_claims) == []
    assert world.fits(info(using("c"), "second")) == ["n0"]


def test_a_reservation_ends_when_the_claim_is_gone() -> None:
    world = world_of_one(claim(), claim(name="d"))
    world.reserve(pod=info(using("c"), "first"))
    world.view.remove_object("ResourceClaim", "default/c")
    assert world.fits(using("d")) == ["n0"]


def test_while_an_allocated_claim_is_reserved_for_one_pod_the_next_reserves_it_too() -> None:
    world = world_of_one(claim(status=allocated("g")))
    assert world.reserve(pod=info(using("c"), "first")) == [[]]
    assert world.fits(info(using("c"), "second")) == ["n0"]
    assert world.reserve(pod=info(using("c"), "second")) == [[]]


def test_all_profiles_share_what_is_reserved() -> None:
    world = world_of_one(claim(), claim(name="d"))
    other = World(nodes=0)
    other.view = world.view
    world.reserve(pod=info(using("c"), "first"))
    assert other.fits(using("d")) == []


def test_a_pod_without_claims_reserves_nothing() -> None:
    world = world_of_one()
    pod = make_pod("p").info()
    assert world.plugin.reserve(pod, "n0", world.view.snapshot()).is_success
    assert world.plugin.plan(pod, "n0", world.view.snapshot())[0].is_skip


# --- what is written ---------------------------------------------------------------------------------------


def test_a_claim_gets_its_finalizer_and_then_its_status() -> None:
    world, pod = world_of_one(), info(using("c"), "first")
    world.reserve(pod=pod)
    finalizer, status = world.plugin.plan(pod, "n0", world.view.snapshot())[1].patches
    assert finalizer.patch == {"metadata": {"finalizers": [FINALIZER]}}
    asked = status.subresource, status.key, status.uid, status.resource_version
    assert asked == ("status", "default/c", "uid-c", "1")
    users = [{"resource": "pods", "name": "p", "uid": "first"}]
    assert status.patch["status"]["reservedFor"] == users  # type: ignore[index]
    assert msgspec.json.encode(status.patch)


def test_parameters_are_repeated_for_each_request_that_they_name() -> None:
    opaque = {"driver": "gpu.example", "parameters": {}}
    config = [{"requests": ["x", "y"], "opaque": opaque}, {"opaque": opaque}]
    world = World(resource_slice("g", "h", node="n0"), claim(exactly("x"), exactly("y"), config=config))
    world.reserve()
    (pending,) = world.view.pending_claims
    assert pending.allocation is not None
    assert [one.requests for one in pending.allocation.devices.config] == [("x", "y"), ("x", "y"), ()]


def test_a_device_that_binds_to_a_node_ties_the_claim_to_it() -> None:
    world = World(resource_slice({**device("g"), "bindsToNode": True}), claim())
    world.reserve("n1")
    (pending,) = world.view.pending_claims
    assert pending.allocation is not None and pending.allocation.node_selector is not None
    assert pending.allocation.node_selector.node_selector_terms[0].match_fields[0].values == ("n1",)


def test_an_allocated_claim_gets_one_more_user_and_keeps_the_others() -> None:
    world = world_of_one(claim(status=allocated("g", users=("before",)), metadata={"finalizers": ["other"]}))
    pod = info(using("c"), "first")
    world.reserve(pod=pod)
    (patch,) = world.plugin.plan(pod, "n0", world.view.snapshot())[1].patches
    assert patch.strategic
    assert patch.patch == {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "first"}]}}


def test_other_finalizers_stay() -> None:
    world = world_of_one(claim(metadata={"finalizers": ["other"]}))
    world.reserve()
    first, _ = world.plugin.plan(using("c").info(), "n0", world.view.snapshot())[1].patches
    assert first.strategic
    assert first.patch == {"metadata": {"finalizers": [FINALIZER]}}


def test_a_claim_reserved_for_the_pod_needs_no_writing() -> None:
    world = world_of_one(claim(status=allocated("g", users=("first",))))
    pod = info(using("c"), "first")
    world.reserve(pod=pod)
    assert world.plugin.plan(pod, "n0", world.view.snapshot())[0].is_skip


# --- through the scheduler ---------------------------------------------------------------------------------


def scheduler(*claims: Any) -> Driver:
    driver = Driver()
    driver.observe(device_class(), resource_slice("g", node="n0"), *(claims or (claim(),)))
    driver.see(node("n0"), node("n1"))
    return driver


def write_all(driver: Driver, actions: list[Action], status: Any) -> list[Action]:
    """The server takes every patch, each giving the next version, and the watch shows the claims at last."""
    version = 1
    while asked := patches(actions):
        (patch,) = asked
        version += 1
        actions = driver.send(ObjectPatched(patch, str(version)))
    for message in seen(claim(version=version, status=status)):
        actions = [*actions, *driver.send(message)]
    return [*actions, *driver.cycle()]


def test_a_pod_is_bound_once_its_claim_is_written_and_seen() -> None:
    driver = scheduler()
    driver.see(using("c"))
    actions = driver.cycle()
    assert binds(actions) == {}
    assert [one.patch.subresource for one in patches(actions)] == [""]
    actions = write_all(driver, actions, allocated("g", users=("p",)))
    assert binds(actions) == {"p": "n0"}


def test_two_pods_for_one_device_get_it_one_after_the_other() -> None:
    driver = scheduler(claim(), claim(name="d"))
    driver.see(using("c"), using("d", name="q"))
    actions = driver.cycle()
    assert len(patches(actions)) == 1
    ((reason, text),) = conditions(actions)
    assert reason == "Unschedulable"
    assert text.startswith("0/2 nodes are available: 2 cannot allocate all claims.")


def test_a_refused_write_gives_the_device_back() -> None:
    driver = scheduler(claim(), claim(name="d"))
    driver.see(using("c"))
    (asked,) = patches(driver.cycle())
    driver.send(ObjectPatchFailed(asked, BindFailure.CONFLICT, "the object has been modified"))
    driver.see(using("d", name="q"))
    assert [one.uid for one in patches(driver.cycle())] == ["q"]


def test_a_pod_that_is_not_bound_after_all_leaves_the_users_of_its_claim() -> None:
    driver = scheduler()
    driver.see(using("c"))
    actions = write_all(driver, driver.cycle(), allocated("g", users=("p",)))
    assert binds(actions) == {"p": "n0"}
    (left,) = patches(driver.send(BindFailed("p", BindFailure.REFUSED, "no")))
    assert (left.patch.subresource, left.patch.strategic, left.patch.resource_version) == ("status", True, "")
    assert left.patch.patch == {"status": {"reservedFor": [{"$patch": "delete", "uid": "p"}]}}


@pytest.mark.parametrize("meanwhile", [allocated("g", users=("somebody",)), allocated("g", node="n1", users=("p",))])
def test_a_claim_given_to_others_or_devices_of_another_node_meanwhile_is_an_error(meanwhile: Any) -> None:
    driver = scheduler()
    driver.see(using("c"))
    actions = write_all(driver, driver.cycle(), meanwhile)
    assert binds(actions) == {}
    assert any("got deallocated elsewhere in the meantime" in text for _, text in conditions(actions))


def test_a_wrong_selector_costs_the_pod_an_attempt_and_nothing_else() -> None:
    driver = scheduler(claim(exactly(selectors=[cel("device.x")])))
    driver.see(using("c"), make_pod("plain").uid("plain"))
    actions = driver.cycle()
    assert set(binds(actions)) == {"plain"}
    assert [reason for reason, _ in conditions(actions)] == ["SchedulerError"]
