"""A gang whose members share one claim: the first is given devices, the others go where these are reached.

Whoever's request comes first, the claim ends up allocated once, at one time, and reserved for all.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from policyengine.scheduler.actions import Action, PatchObject
from policyengine.scheduler.messages import BindFailed, BindFailure, ObjectObserved, ObjectPatched, ObjectPatchFailed
from tests.builders import PodBuilder
from tests.plugins.devices.devices import allocated, claim, device_class, resource_slice, using
from tests.scheduler.driver import Driver, Label, binds, conditions, node, profile
from tests.scheduler.storage import patches, seen


def member(name: str, minimum: str = "2", of: str = "c") -> PodBuilder:
    return using(of, name=name).uid(name).labels({"gang": "g", "min": minimum})


def scheduler(*claims: Any) -> Driver:
    driver = Driver(profile(gangs=(Label(),)))
    driver.observe(device_class(), resource_slice("g", node="n1"), *(claims or (claim(),)))
    return driver.showing(node("n0"), node("n1"), node("n2"))


def statuses(actions: list[Action]) -> dict[str, Any]:
    """By pod, what it wants to write into the claim's status."""
    return {one.uid: one.patch.patch["status"] for one in patches(actions) if one.patch.subresource == "status"}


def take(driver: Driver, asked: list[PatchObject], version: int) -> list[Action]:
    """The server takes these, each giving the claim its next version."""
    answers = [driver.send(ObjectPatched(one, str(version + place))) for place, one in enumerate(asked, 1)]
    return [action for actions in answers for action in actions]


def bound(driver: Driver, shown: ObjectObserved) -> dict[str, str]:
    """Who is bound once the watch shows this."""
    return binds([*driver.send(shown), *driver.cycle()])


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_a_gang_that_shares_a_claim_that_nobody_allocated_is_placed_together(order: tuple[str, ...]) -> None:
    driver = scheduler().showing(*(member(name, "3") for name in "abc"))
    finalizers = patches(driver.cycle())
    assert sorted(one.uid for one in finalizers) == ["a", "b", "c"]
    driver.now += 5.0  # the requests take their time
    asked = take(driver, sorted(finalizers, key=lambda one: order.index(one.uid)), 1)
    written = statuses(asked)
    assert sorted(written) == ["a", "b", "c"]
    assert written["a"]["allocation"] == written["b"]["allocation"] == written["c"]["allocation"]
    assert written["a"]["allocation"]["allocationTimestamp"]
    assert binds(take(driver, patches(asked), 4)) == {}
    (shown,) = seen(claim(version=7, status=allocated("g", node="n1", users=("a", "b", "c"))))
    assert bound(driver, shown) == {"a": "n1", "b": "n1", "c": "n1"}


def test_a_later_writer_says_the_time_that_the_first_one_said() -> None:
    driver = scheduler().showing(member("a"), member("b"))
    first, second = patches(driver.cycle())
    one = statuses(take(driver, [first], 1))
    driver.now += 60.0
    other = statuses(take(driver, [second], 2))
    assert one[first.uid]["allocation"] == other[second.uid]["allocation"]


def test_a_gang_that_shares_an_allocated_claim_is_placed_together() -> None:
    driver = scheduler(claim(status=allocated("g", node="n1"))).showing(member("a"), member("b"))
    asked = patches(driver.cycle())
    users = [one.patch.patch["status"]["reservedFor"] for one in asked]  # type: ignore[index]
    assert users == [[{"resource": "pods", "name": name, "uid": name}] for name in "ab"]
    assert binds(take(driver, asked, 1)) == {}
    (shown,) = seen(claim(version=3, status=allocated("g", node="n1", users=("a", "b"))))
    assert bound(driver, shown) == {"a": "n1", "b": "n1"}


def test_a_gang_that_finds_too_little_room_beside_its_claim_takes_no_device() -> None:
    driver = scheduler(claim(), claim(name="d"))
    driver.see(node("n1", pods="1"), member("a"), member("b"))
    actions = driver.cycle()
    assert patches(actions) == [] and {reason for reason, _ in conditions(actions)} == {"Unschedulable"}
    driver.see(using("d", name="alone").uid("alone"))
    assert [one.uid for one in patches(driver.cycle())] == ["alone"]


def test_a_refused_write_takes_the_whole_gang_back_and_the_device_is_free() -> None:
    driver = scheduler(claim(), claim(name="d")).showing(member("a"), member("b"))
    first, _ = patches(driver.cycle())
    driver.send(ObjectPatchFailed(first, BindFailure.REFUSED, "field is immutable"))
    driver.see(using("d", name="alone").uid("alone"))
    assert [one.uid for one in patches(driver.cycle())] == ["alone"]


def test_a_member_that_is_not_bound_after_all_leaves_the_claim_to_the_others() -> None:
    driver = scheduler().showing(member("a"), member("b"))
    asked = take(driver, patches(driver.cycle()), 1)
    take(driver, patches(asked), 3)
    (shown,) = seen(claim(version=5, status=allocated("g", node="n1", users=("a", "b"))))
    assert sorted(bound(driver, shown)) == ["a", "b"]
    (left,) = patches(driver.send(BindFailed("a", BindFailure.REFUSED, "no")))
    assert left.patch.patch == {"status": {"reservedFor": [{"$patch": "delete", "uid": "a"}]}}
