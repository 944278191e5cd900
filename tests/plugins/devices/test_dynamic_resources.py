"""DynamicResources: the claims of a pod, which devices they mean, and who holds those."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.cluster.view import ClusterView
from policyengine.framework.plugin import UNCONCERNED
from policyengine.framework.status import Code
from policyengine.plugins.devices.dynamic_resources import DynamicResources
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.messages import ObjectObserved
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.plugins.devices.devices import (
    NOT_HERE,
    ZONE_0,
    World,
    allocated,
    cel,
    claim,
    device,
    device_class,
    exactly,
    first_of,
    gpus,
    resource_slice,
    tainted,
    using,
)
from tests.scheduler.driver import Driver, conditions, node
from tests.scheduler.storage import seen


def test_a_pod_without_claims_is_no_concern() -> None:
    plugin, pod = DynamicResources(), make_pod("p").info()
    assert plugin.signature(pod) is UNCONCERNED
    assert plugin.pre_enqueue(pod, ClusterView().snapshot()).is_success


def from_template(status: list[dict[str, Any]] | None) -> Any:
    pod = make_pod("p").set("spec.resourceClaims", [{"name": "e", "resourceClaimTemplateName": "t"}])
    return pod if status is None else pod.set("status.resourceClaimStatuses", status)


def owned_by(uid: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": uid, "controller": True}]}


GOING = claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
MADE = from_template([{"name": "e", "resourceClaimName": "c"}])
UNSET = make_pod("p").set("spec.resourceClaims", [{"name": "e"}])
NOT_MADE_FOR_IT = "was not created for Pod default/p (Pod is not owner)"


@pytest.mark.parametrize(
    ("claims", "pod", "reason"),
    [
        ([], using("c"), 'could not find ResourceClaim "default/c"'),
        ([GOING], using("c"), 'resourceclaim "c" is being deleted'),
        ([claim()], from_template(None), 'pod "default/p": ResourceClaim not created yet'),
        ([claim(metadata=owned_by("other"))], MADE, f"ResourceClaim default/c {NOT_MADE_FOR_IT}"),
        ([], UNSET, 'pod "default/p", spec.resourceClaim "e": none of the supported fields are set'),
        ([claim(exactly(cls="none"))], using("c"), "request r: device class none does not exist"),
        ([claim(first_of({"deviceClassName": "x"}))], using("c"), "request r/a0: device class x does not exist"),
        ([claim({"name": "r"})], using("c"), "resource claim default/c, request r: unknown request type"),
        ([claim(exactly(cls=""))], using("c"), "request r: unsupported request type"),
        ([claim(status=allocated("g", users=tuple(f"u{n}" for n in range(256))))], using("c"), "resourceclaim in use"),
    ],
)
def test_the_pod_as_a_whole_is_refused(claims: list[Any], pod: Any, reason: str) -> None:
    assert World(gpus("g"), *claims).evaluate(pod) == reason


def test_a_claim_made_from_a_template_is_found_by_the_pods_status() -> None:
    world = World(gpus("g"), claim(metadata=owned_by("p")))
    assert world.fits(MADE) == ["n0"]
    assert world.fits(from_template([{"name": "e"}])) == ["n0", "n1"]  # left out on purpose


def test_a_pod_stays_out_of_the_queue_until_its_claims_are_made() -> None:
    plugin, empty = DynamicResources(), ClusterView().snapshot()
    world = World(gpus("g"), claim(metadata=owned_by("p")))
    made = MADE.info()
    waits = plugin.pre_enqueue(from_template(None).info(), empty)
    assert waits.message == 'pod "default/p": ResourceClaim not created yet'
    assert plugin.pre_enqueue(made, empty).message == 'could not find ResourceClaim "default/c"'
    assert plugin.pre_enqueue(made, world.view.snapshot()).is_success


def test_of_a_pod_whose_claim_is_missing_nothing_is_told_and_it_is_placed_once_the_claim_is_there() -> None:
    driver = Driver().showing(node("n0"))
    assert driver.see(using("c")) == [] and driver.cycle() == []
    assert driver.places("p") == ["gated"]
    for item in (device_class(), gpus("g"), claim()):
        driver.send(ObjectObserved(type(item).__name__, item))
    assert any(isinstance(action, PatchObject) for action in driver.cycle())


SELECTORS = [
    ('device.driver == "gpu.example"', True),
    ('device.driver == "other"', False),
    ('device.attributes["gpu.example"].model == "a100"', True),
    ('device.attributes["other.example"].link == 7', True),
    ('device.attributes["gpu.example"].?absent.orValue("x") == "x"', True),
    ('"absent" in device.attributes["unknown.example"]', False),
    ('device.capacity["gpu.example"].memory.compareTo(quantity("40Gi")) >= 0', True),
    ('device.capacity["gpu.example"].memory.isGreaterThan(quantity("40Gi"))', False),
    ('device.attributes["gpu.example"].firmware.isGreaterThan(semver("1.2.0"))', True),
    ('device.attributes["gpu.example"].ecc', True),
    ('cel.bind(gpu, device.attributes["gpu.example"], gpu.ecc && gpu.slot == 3)', True),
    ("device.allowMultipleAllocations", False),
]
A100 = device(
    "g",
    "40Gi",
    model="a100",
    ecc=True,
    slot=3,
    attributes={"other.example/link": {"int": 7}, "firmware": {"version": "1.10.0"}},
)


@pytest.mark.parametrize(("expression", "meets"), SELECTORS)
def test_a_selector_is_true_of_a_device(expression: str, meets: bool) -> None:
    own = World(gpus(A100), claim(exactly(selectors=[cel(expression)])))
    of_class = World(gpus(A100), claim(exactly(cls="c")), device_class("c", expression))
    assert own.fits() == of_class.fits() == (["n0"] if meets else [])


@pytest.mark.parametrize(
    ("expression", "fragment"),
    [
        ('device.attributes["gpu.example"].absent == 1', "selector #0: CEL runtime error: no such key"),
        ("device.driver ==", "selector #0: CEL compile error"),
        ('"text"', "selector #0: CEL runtime error: the selector is not a bool"),
        ('device.capacity["gpu.example"].memory > 3', "selector #0: CEL runtime error"),
    ],
)
def test_a_selector_without_an_answer_is_an_error_of_that_node(expression: str, fragment: str) -> None:
    world = World(gpus(A100), claim(exactly(selectors=[cel(expression)])))
    pod = using("c").info()
    diagnosis = world.evaluator.filter(pod, world.view.snapshot())
    refusal = diagnosis.refusal(world.view.nodes.row_of["n0"])
    assert refusal.code is Code.ERROR
    assert fragment in refusal.message


@pytest.mark.parametrize(
    ("request_", "fits"),
    [
        (exactly(count=2), True),
        (exactly(count=3), False),
        (exactly(allocationMode="All"), True),
        (exactly(allocationMode="All", selectors=[cel("false")]), False),
        (first_of({"count": 3}, {"count": 2}), True),
        (first_of({"count": 3}, {"count": 4}), False),
        (exactly(count=33), False),
        (exactly(count=0), False),
        (exactly(allocationMode="Some"), False),
    ],
)
def test_how_many_devices_are_wanted(request_: Any, fits: bool) -> None:
    assert World(gpus("g0", "g1"), claim(request_)).fits() == (["n0"] if fits else [])


def test_alternatives_are_tried_in_order_and_the_earlier_scores_more() -> None:
    big = 'device.capacity["gpu.example"].memory.compareTo(quantity("80Gi")) >= 0'
    slices = (gpus(device("small", "40Gi"), node="n0"), gpus(device("big", "80Gi"), node="n1"))
    world = World(*slices, claim(first_of({"selectors": [cel(big)]}, {})))
    pod = using("c").info()
    snapshot = world.view.snapshot()
    node_scores = world.evaluator.score(pod, snapshot, world.evaluator.filter(pod, snapshot))
    weighted = dict(zip(node_scores.rows.tolist(), node_scores.total.tolist(), strict=True))
    rows = world.view.nodes.row_of
    assert weighted == {rows["n0"]: 2 * (100 * 7 // 8), rows["n1"]: 2 * 100}
    assert world.reserve("n1") == [[("r/a0", "big")]]


def test_without_alternatives_nothing_is_scored() -> None:
    world = World(gpus("g"), claim())
    pod, snapshot = using("c").info(), world.view.snapshot()
    assert not world.evaluator.score(pod, snapshot, world.evaluator.filter(pod, snapshot)).per_plugin


def test_an_allocated_claim_binds_its_pods_to_where_its_devices_are() -> None:
    world = World(gpus("g"), gpus("g", node="n1"), claim(status=allocated("g")))
    assert world.evaluate() == {"n0": "", "n1": NOT_HERE}


def test_an_allocated_claim_without_a_selector_is_available_everywhere() -> None:
    assert World(claim(status={"allocation": {}})).fits() == ["n0", "n1"]


def test_devices_of_other_claims_are_taken_until_they_are_given_back() -> None:
    world = World(gpus("g"), claim(), claim(name="other", status=allocated("g")))
    assert world.fits() == []
    world.see(claim(name="other", version=2))
    assert world.fits() == ["n0"]
    world.see(claim(name="other", version=3, status=allocated("g")))
    assert world.fits() == []
    world.view.remove_object("ResourceClaim", "default/other")
    assert world.fits() == ["n0"]


def test_slices_and_classes_that_change_are_seen() -> None:
    world = World(claim())
    assert world.fits() == []
    world.see(gpus("g"))
    assert world.fits() == ["n0"]
    world.see(gpus(tainted("NoSchedule"), version=2))
    assert world.fits() == []
    world.view.remove_object("DeviceClass", "gpu")
    assert world.evaluate() == "request r: device class gpu does not exist"


def test_a_node_that_comes_or_changes_its_labels_is_judged_anew() -> None:
    world = World(resource_slice("g", nodeSelector=ZONE_0), claim())
    pod = using("c").info()
    assert world.fits(pod) == ["n0"]
    world.view.add_or_update_node(make_node("n1").label("zone", "z0").version(9).build())
    world.view.add_or_update_node(make_node("n2").label("zone", "z0").build())
    assert world.fits(pod) == ["n0", "n1", "n2"]


def test_two_claims_of_a_pod_share_no_device() -> None:
    claims = (claim(), claim(name="d"))
    assert World(gpus("g"), *claims).fits(using("c", "d")) == []
    assert World(gpus("g", "h"), *claims).fits(using("c", "d")) == ["n0"]
    assert World(gpus("g"), *claims).fits(using("c", "c")) == ["n0"]  # one claim named twice


UNHELPFUL = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def refusal(pod: PodBuilder, at: NodeBuilder) -> str:
    driver = Driver()
    driver.see(at)
    for shown in seen(device_class(), claim()):
        driver.send(shown)
    driver.see(pod)
    ((reason, message),) = conditions(driver.cycle())
    assert reason == "Unschedulable"
    return message


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (make_pod("p").req(cpu="9"), f"1 Insufficient cpu. no new claims to deallocate, {UNHELPFUL}"),
        (using("c"), f"1 cannot allocate all claims. still not schedulable, {UNHELPFUL}"),
        (make_pod("p").pvc("absent"), 'persistentvolumeclaim "absent" not found. not found'),
    ],
    ids=["without claims", "with claims", "refused before it was asked"],
)
def test_every_refusal_speaks_of_claims(pod: PodBuilder, message: str) -> None:
    assert refusal(pod, node("n", cpu="1")) == f"0/1 nodes are available: {message}"
