"""Extended resources that device classes stand for: who gives them on which node, and the claim that is made."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.cluster.device_objects import ResourceClaim
from policyengine.cluster.objects import decode
from policyengine.plugins.devices.extended_claim import ANNOTATION, ExtendedResources
from policyengine.plugins.extended_resources import IMPLICIT, backed_resources
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.messages import BindFailure, ObjectDeleted, ObjectObserved, ObjectPatched, ObjectPatchFailed
from tests.builders import PodBuilder, make_node, make_pod
from tests.plugins.devices.devices import (
    NOT_HERE,
    World,
    allocated,
    claim,
    device_class,
    exactly,
    gpus,
    using,
)
from tests.scheduler.driver import Driver, binds, conditions, node
from tests.scheduler.storage import patches, seen

GPU = "example.com/gpu"
CLASS = device_class("gpu", extendedResourceName=GPU)


def asking(name: str = "p", **amounts: int) -> PodBuilder:
    return make_pod(name).req({GPU: amounts.pop("gpu", 1), **amounts})


def world(*items: Any) -> World:
    return World(CLASS, gpus("g", "h", node="n0"), *items)


# --- which class -------------------------------------------------------------------------------------------


def classes(*found: Any) -> dict[str, str]:
    return {name: one.metadata.name for name, one in backed_resources({c.metadata.name: c for c in found}).items()}


def test_every_class_stands_for_a_resource_of_its_own_name() -> None:
    assert classes(device_class("a")) == {f"{IMPLICIT}a": "a"}


@pytest.mark.parametrize(
    ("born", "wins"),
    [(("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"), "b"), (("", ""), "a"), (("2026", "2025"), "a")],
)
def test_of_two_classes_for_a_resource_the_newer_counts_then_the_first_by_name(born: Any, wins: str) -> None:
    found = [
        decode(
            type(CLASS),
            {"metadata": {"name": name, "creationTimestamp": time}, "spec": {"extendedResourceName": GPU}},
        )
        for name, time in zip("ab", born, strict=True)
    ]
    assert classes(*found)[GPU] == classes(*reversed(found))[GPU] == wins


def test_the_most_that_a_container_that_ends_needs_beyond_those_that_live_on_is_asked_for() -> None:
    first, second, main = [
        {"name": name, "resources": {"requests": {GPU: amount}}}
        for name, amount in (("i", "3"), ("j", "4"), ("m", "2"))
    ]
    pod = make_pod("p").set("spec.initContainers", [first, second]).set("spec.containers", [main]).info()
    made = ExtendedResources(pod, World(CLASS).view.snapshot()).on(make_node("n").build())
    counts = {one.name: one.exactly.count for one in made.requests if one.exactly}
    assert counts == {"container-1-request-0": 2, "container-2-request-0": 2}
    assert {(one.container, one.request) for one in made.mappings} == {
        (name, f"container-{number}-request-0") for name in "ij" for number in (1, 2)
    } | {("m", "container-2-request-0")}


# --- which nodes -------------------------------------------------------------------------------------------


def test_devices_of_slices_stand_in_for_a_resource_that_no_device_plugin_offers() -> None:
    assert world().evaluate(asking(gpu=2)) == {"n0": "", "n1": "cannot allocate all claims"}


def test_a_node_with_a_device_plugin_needs_no_slices() -> None:
    found = world()
    found.view.add_or_update_node(make_node("n1").capacity({GPU: 4}).build())
    assert found.fits(asking(gpu=3)) == ["n1"]
    assert found.reserve("n1", asking(gpu=3).uid("p").info()) == []


def test_without_a_class_the_resource_is_none_of_its_business() -> None:
    assert World(gpus("g", node="n0")).fits(asking()) == ["n0", "n1"]


def test_a_resource_of_neither_kind_fits_nowhere() -> None:
    assert world().evaluate(asking(**{"example.com/other": 1})) == {
        "n0": "cannot fit resource",
        "n1": "cannot fit resource",
    }


def test_claims_and_extended_resources_share_the_devices() -> None:
    found = world(claim())
    assert found.fits(using("c").req({GPU: 1})) == ["n0"]
    assert found.fits(using("c").req({GPU: 2})) == []


# --- through the scheduler ---------------------------------------------------------------------------------


class Server:
    """Takes every write, and shows claims as they come to be."""

    def __init__(self, *items: Any) -> None:
        self.driver = Driver()
        self.driver.observe(CLASS, gpus("g", node="n0"), *items)
        self.driver.see(node("n0"), node("n1"))
        self.written: list[PatchObject] = []
        self._version = 100

    def take(self, asked: PatchObject) -> list[Any]:
        self.written.append(asked)
        patch = asked.patch
        self._version += 1
        actions = self.driver.send(ObjectPatched(asked, str(self._version)))
        if patch.kind != "ResourceClaim":
            return actions
        if patch.verb == "DELETE":
            return [*actions, *self.driver.send(ObjectDeleted(patch.kind, patch.namespace, patch.name))]
        known = self.driver.state.view.objects(ResourceClaim).get(patch.key)
        meta = {"uid": f"made-{patch.name}"} if known is None else {"uid": known.metadata.uid}
        given: Any = patch.patch
        whole = given if known is None else {**self._whole, **given}
        self._whole = whole
        item = decode(
            ResourceClaim,
            {**whole, "metadata": {**self._meta(patch, whole), **meta, "resourceVersion": str(self._version)}},
        )
        return [*actions, *self.driver.send(ObjectObserved(patch.kind, item))]

    def _meta(self, patch: Any, whole: Any) -> dict[str, Any]:
        return {"name": patch.name, "namespace": patch.namespace, **whole.get("metadata", {})}

    def settle(self, actions: list[Any]) -> list[Any]:
        """Until nothing is asked for; all that was asked for."""
        done = list(actions)
        while asked := patches(actions):
            actions = [*self.take(asked[0]), *patches(actions)[1:]]
            done += actions
        return [*done, *self.driver.cycle()]


def test_the_claim_is_made_allocated_and_named_in_the_pods_status_before_the_pod_is_bound() -> None:
    server = Server()
    server.driver.see(asking().uid("p"))
    actions = server.settle(server.driver.cycle())
    assert binds(actions) == {"p": "n0"}
    made, status, named = (one.patch for one in server.written)
    assert (made.verb, status.verb, named.verb) == ("POST", "PATCH", "PATCH")
    whole: Any = made.patch
    assert whole["metadata"]["annotations"] == {ANNOTATION: "true"}
    assert whole["metadata"]["ownerReferences"][0]["uid"] == "p"
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert whole["spec"]["devices"]["requests"] == [{"name": "container-0-request-0", "exactly": request}]
    given: Any = status.patch["status"]
    assert [one["device"] for one in given["allocation"]["devices"]["results"]] == ["g"]
    mapping = {"containerName": "c", "resourceName": GPU, "requestName": "container-0-request-0"}
    assert named.patch == {
        "status": {"extendedResourceClaimStatus": {"requestMappings": [mapping], "resourceClaimName": made.name}}
    }


def test_a_device_is_not_given_twice_while_the_claim_is_made() -> None:
    server = Server()
    server.driver.see(asking().uid("p"), asking("q").uid("q"))
    actions = server.driver.cycle()
    assert [one.uid for one in patches(actions)] == ["p"]
    assert conditions(actions)[0][1].startswith("0/2 nodes are available: 2 cannot allocate all claims.")


def test_a_claim_that_was_made_for_an_attempt_that_failed_is_deleted() -> None:
    server = Server()
    server.driver.see(asking().uid("p"))
    (made,) = patches(server.driver.cycle())
    (status,) = patches(server.take(made))
    asked = patches(server.driver.send(ObjectPatchFailed(status, BindFailure.REFUSED, "no")))
    assert [(one.patch.verb, one.patch.name) for one in asked] == [
        ("PATCH", made.patch.name),
        ("DELETE", made.patch.name),
    ]
    assert asked[0].patch.patch == {"metadata": {"finalizers": None}}


def test_a_claim_that_nobody_uses_is_deallocated_for_a_pod_that_fits_nowhere_with_it() -> None:
    server = Server(claim(status=allocated("g", node="n9")))
    server.driver.see(using("c").uid("p"))
    actions = server.driver.cycle()
    ((_, text),) = conditions(actions)
    assert text.startswith(
        f"0/2 nodes are available: 2 {NOT_HERE}. deallocation of ResourceClaim completed, preemption:"
    )
    (asked,) = patches(actions)
    assert asked.patch.patch == {"status": {"allocation": None, "reservedFor": None, "devices": None}}
    server.driver.send(ObjectPatched(asked, "2"))
    for message in seen(claim(version=2)):
        server.driver.send(message)
    assert [one.patch.patch for one in patches(server.driver.wait(30) + server.driver.cycle())] == [
        {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    ]


@pytest.mark.parametrize("users", [("other",), ("p", "other")])
def test_a_claim_that_others_use_stays(users: tuple[str, ...]) -> None:
    server = Server(claim(status=allocated("g", node="n9", users=users)))
    server.driver.see(using("c").uid("p"))
    actions = server.driver.cycle()
    assert patches(actions) == []
    assert "still not schedulable" in conditions(actions)[0][1]


def test_a_deallocation_that_fails_is_tried_again_after_the_pods_backoff() -> None:
    server = Server(claim(status=allocated("g", node="n9")))
    server.driver.see(using("c").uid("p"))
    (asked,) = patches(server.driver.cycle())
    server.driver.send(ObjectPatchFailed(asked, BindFailure.OVERLOADED, "busy"))
    assert len(patches(server.driver.wait(30) + server.driver.cycle())) == 1


def test_what_an_earlier_attempt_left_goes_when_the_pod_fits_nowhere() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    meta = {"annotations": {ANNOTATION: "true"}, "ownerReferences": [owner], "finalizers": ["x"]}
    left = claim(exactly("container-0-request-0"), name="left", status=allocated("g"), metadata=meta)
    server = Server(left)
    server.driver.see(asking().uid("p"))
    actions = server.driver.cycle()
    assert "deletion of ResourceClaim completed" in conditions(actions)[0][1]
    assert [(one.patch.verb, one.patch.name) for one in patches(actions)] == [("PATCH", "left"), ("DELETE", "left")]
    for asked in patches(actions):
        server.driver.send(ObjectPatched(asked, ""))
    server.driver.send(ObjectDeleted("ResourceClaim", "default", "left"))
    assert [one.patch.verb for one in patches(server.driver.wait(30) + server.driver.cycle())] == ["POST"]
