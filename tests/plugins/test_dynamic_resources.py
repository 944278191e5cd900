"""DynamicResources, rule by rule: claims, selectors, pools, constraints, what is taken (API reference, KEP-4381)."""

from __future__ import annotations

from timeit import timeit
from typing import Any

import pytest

from policyengine.framework.plugin import UNCONCERNED
from policyengine.framework.status import Code
from policyengine.plugins.dynamic_resources import DynamicResources
from tests.builders import make_node, make_pod
from tests.plugins.devices import (
    DRIVER,
    World,
    allocated,
    cel,
    claim,
    device,
    device_class,
    exactly,
    first_of,
    resource_slice,
    using,
)

CANNOT = "cannot allocate all claims"
NOT_HERE = "resourceclaim not available on the node"


def gpus(*names: str, node: str = "n0", **more: Any) -> Any:
    return resource_slice(*names, node=node, **more)


# --- the pod's claims --------------------------------------------------------------------------------------


def test_a_pod_without_claims_is_no_concern() -> None:
    plugin, pod = DynamicResources(), make_pod("p").info()
    assert plugin.signature(pod) is UNCONCERNED
    assert plugin.pre_enqueue(pod).is_success
    assert timeit(lambda: plugin.signature(pod), number=20_000) / 20_000 < 5e-6


def from_template(status: list[dict[str, Any]] | None) -> Any:
    pod = make_pod("p").set("spec.resourceClaims", [{"name": "e", "resourceClaimTemplateName": "t"}])
    return pod if status is None else pod.set("status.resourceClaimStatuses", status)


def owned_by(uid: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": uid, "controller": True}]}


@pytest.mark.parametrize(
    ("claims", "pod", "reason"),
    [
        ([], using("c"), 'could not find ResourceClaim "default/c"'),
        (
            [claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            using("c"),
            'resourceclaim "c" is being deleted',
        ),
        ([claim()], from_template(None), 'pod "default/p": ResourceClaim not created yet'),
        (
            [claim(metadata=owned_by("other"))],
            from_template([{"name": "e", "resourceClaimName": "c"}]),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
        (
            [],
            make_pod("p").set("spec.resourceClaims", [{"name": "e"}]),
            'pod "default/p", spec.resourceClaim "e": none of the supported fields are set',
        ),
        ([claim(exactly(cls="none"))], using("c"), "request r: device class none does not exist"),
        ([claim(first_of({"deviceClassName": "x"}))], using("c"), "request r/a0: device class x does not exist"),
        ([claim({"name": "r"})], using("c"), "resource claim default/c, request r: unknown request type"),
        ([claim(exactly(cls=""))], using("c"), "request r: unsupported request type"),
        (
            [claim(status=allocated("g", users=tuple(f"u{n}" for n in range(256))))],
            using("c"),
            "resourceclaim in use",
        ),
    ],
)
def test_the_pod_as_a_whole_is_refused(claims: list[Any], pod: Any, reason: str) -> None:
    assert World(gpus("g"), *claims).judge(pod) == reason


def test_a_claim_made_from_a_template_is_found_by_the_pods_status() -> None:
    world = World(gpus("g"), claim(metadata=owned_by("p")))
    assert world.fits(from_template([{"name": "e", "resourceClaimName": "c"}])) == ["n0"]
    assert world.fits(from_template([{"name": "e"}])) == ["n0", "n1"]  # left out on purpose


def test_a_pod_stays_out_of_the_queue_until_its_claims_are_made() -> None:
    plugin = DynamicResources()
    assert plugin.pre_enqueue(from_template(None).info()).message == 'pod "default/p": ResourceClaim not created yet'
    assert plugin.pre_enqueue(from_template([{"name": "e", "resourceClaimName": "c"}]).info()).is_success


# --- which devices -----------------------------------------------------------------------------------------


def test_a_node_without_devices_is_refused() -> None:
    assert World(gpus("g"), claim()).judge() == {"n0": "", "n1": CANNOT}


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
    judgement = world.evaluator.judge(pod, world.view.snapshot())
    refusal = judgement.refusal(world.view.nodes.row_of["n0"])
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
    ranking = world.evaluator.rank(pod, snapshot, world.evaluator.judge(pod, snapshot))
    weighted = dict(zip(ranking.rows.tolist(), ranking.total.tolist(), strict=True))
    rows = world.view.nodes.row_of
    assert weighted == {rows["n0"]: 2 * (100 * 7 // 8), rows["n1"]: 2 * 100}
    assert world.reserve("n1") == [[("r/a0", "big")]]


def test_without_alternatives_nothing_is_scored() -> None:
    world = World(gpus("g"), claim())
    pod, snapshot = using("c").info(), world.view.snapshot()
    assert not world.evaluator.rank(pod, snapshot, world.evaluator.judge(pod, snapshot)).per_plugin


# --- pools -------------------------------------------------------------------------------------------------

ZONE_0 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z0"]}]}]}


@pytest.mark.parametrize(
    ("slices", "fits"),
    [
        ([resource_slice("g", allNodes=True)], ["n0", "n1"]),
        ([resource_slice("g", nodeSelector=ZONE_0)], ["n0"]),
        (
            [
                resource_slice(
                    {**device("a"), "nodeName": "n1"},
                    {**device("b"), "nodeSelector": ZONE_0},
                    perDeviceNodeSelection=True,
                )
            ],
            ["n0", "n1"],
        ),
        ([resource_slice({**device("a"), "nodeName": "n1"}, perDeviceNodeSelection=True)], ["n1"]),
        ([resource_slice("g", allNodes=False)], []),
        # a newer generation replaces all older slices
        ([resource_slice("g", node="n0"), resource_slice(node="n0", generation=2)], []),
        (
            [
                resource_slice("g", node="n0", pool="x", count=2),
                resource_slice("h", node="n1", pool="x", generation=2),
            ],
            ["n1"],
        ),
        # a pool that is not whole gives nothing
        ([resource_slice("g", node="n0", count=2)], []),
        (
            [
                resource_slice("g", node="n0", pool="x", count=2, name="1"),
                resource_slice("h", node="n1", pool="x", count=2, name="2"),
            ],
            ["n0", "n1"],
        ),
    ],
)
def test_which_slices_a_node_reaches(slices: list[Any], fits: list[str]) -> None:
    assert World(*slices, claim()).fits() == fits


def test_all_devices_of_a_pool_that_is_not_whole_are_an_error() -> None:
    world = World(gpus("g", count=2), claim(exactly(allocationMode="All")))
    text = (
        "claim default/c, request r: asks for all devices, but resource pool gpu.example/n0 is currently being updated"
    )
    assert world.judge() == {"n0": text, "n1": CANNOT}


def test_a_pool_with_two_devices_of_a_name_is_invalid() -> None:
    assert World(gpus("g", "g"), claim()).judge() == {"n0": "invalid resource pools were encountered", "n1": CANNOT}


def test_devices_are_tried_by_driver_pool_slice_and_place() -> None:
    world = World(
        resource_slice("late", node="n0", pool="b", driver="z.example"),
        resource_slice("second", node="n0", pool="a", count=2, name="y", driver="a.example"),
        resource_slice("first", node="n0", pool="a", count=2, name="x", driver="a.example"),
        claim(exactly(count=3)),
    )
    assert world.reserve() == [[("r", "first"), ("r", "second"), ("r", "late")]]


# --- taints, counters, capacity, admin access --------------------------------------------------------------


def tainted(effect: str) -> Any:
    return {**device("g"), "taints": [{"key": "broken", "value": "yes", "effect": effect}]}


@pytest.mark.parametrize(
    ("effect", "toleration", "fits"),
    [
        ("NoSchedule", None, False),
        ("NoExecute", None, False),
        ("None", None, True),
        ("NoSchedule", {"operator": "Exists"}, True),
        ("NoSchedule", {"key": "broken", "value": "yes"}, True),
        ("NoSchedule", {"key": "broken", "value": "no"}, False),
        ("NoExecute", {"operator": "Exists", "effect": "NoSchedule"}, False),
    ],
)
def test_a_taint_keeps_a_device_unless_tolerated(effect: str, toleration: Any, fits: bool) -> None:
    request = exactly(tolerations=[toleration] if toleration else [])
    assert World(gpus(tainted(effect)), claim(request)).fits() == (["n0"] if fits else [])


def partition(name: str, amount: str) -> Any:
    draws = [{"counterSet": "card", "counters": {"memory": {"value": amount}}}]
    return {**device(name), "consumesCounters": draws}


def partitioned(*devices: Any, total: str = "8Gi") -> list[Any]:
    card = {"name": "card", "counters": {"memory": {"value": total}}}
    counters = resource_slice(name="0", pool="n0", count=2, sharedCounters=[card])
    return [counters, gpus(*devices, name="1", count=2)]


@pytest.mark.parametrize(
    ("amounts", "count", "taken", "fits"),
    [
        (["4Gi", "4Gi"], 2, [], True),
        (["4Gi", "5Gi"], 2, [], False),
        (["4Gi", "5Gi", "1Gi"], 2, [], True),
        (["4Gi", "4Gi"], 1, ["d0"], True),
        (["4Gi", "5Gi"], 1, ["d0"], False),
        (["9Gi"], 1, [], False),
    ],
)
def test_partitions_share_counters(amounts: list[str], count: int, taken: list[str], fits: bool) -> None:
    devices = [partition(f"d{place}", amount) for place, amount in enumerate(amounts)]
    other = claim(name="other", status=allocated(*taken)) if taken else claim(name="other")
    world = World(*partitioned(*devices), claim(exactly(count=count)), other)
    assert ("n0" in world.fits()) == fits


def test_a_device_of_an_unknown_counter_makes_its_pool_invalid() -> None:
    strange = {**device("g"), "consumesCounters": [{"counterSet": "none", "counters": {"memory": {"value": 1}}}]}
    judged = World(*partitioned(strange), claim()).judge()
    assert judged == dict.fromkeys(("n0", "n1"), "invalid resource pools were encountered")


def shared(policy: Any = None) -> Any:
    memory = {"value": "10Gi", **({"requestPolicy": policy} if policy else {})}
    return {"name": "g", "allowMultipleAllocations": True, "capacity": {"memory": memory}}


def share_of(amount: str) -> Any:
    return exactly(capacity={"requests": {"memory": amount}})


def consumed(amount: str) -> Any:
    return allocated("g", shareID="s", consumedCapacity={"memory": amount})


@pytest.mark.parametrize(
    ("policy", "request_", "held", "fits"),
    [
        (None, share_of("10Gi"), None, True),
        (None, share_of("11Gi"), None, False),
        (None, share_of("4Gi"), "6Gi", True),
        (None, share_of("5Gi"), "6Gi", False),
        (None, exactly(), "1Gi", False),  # without a default all of it is meant
        ({"default": "1Gi"}, exactly(), "9Gi", True),
        ({"validRange": {"min": "2Gi", "step": "2Gi"}}, share_of("3Gi"), "6Gi", True),
        ({"validRange": {"min": "2Gi", "step": "2Gi"}}, share_of("5Gi"), "5Gi", False),
        ({"validRange": {"min": "1Gi", "max": "4Gi"}}, share_of("5Gi"), None, False),
        ({"validValues": ["2Gi", "4Gi"]}, share_of("3Gi"), "6Gi", True),
        ({"validValues": ["2Gi", "4Gi"]}, share_of("5Gi"), None, False),
        (None, exactly(capacity={"requests": {"cores": "1"}}), None, False),
        (None, share_of("lots"), None, False),
    ],
)
def test_a_device_gives_shares_while_capacity_is_left(policy: Any, request_: Any, held: str | None, fits: bool) -> None:
    other = claim(name="other", status=consumed(held) if held else None)
    assert World(gpus(shared(policy)), claim(request_), other).fits() == (["n0"] if fits else [])


def test_a_share_is_recorded_with_what_it_consumes() -> None:
    world = World(gpus(shared()), claim(share_of("4Gi")), claim(share_of("6Gi"), name="d"))
    world.reserve(pod=using("c", "d").info())
    first, second = [one.allocation.devices.results[0] for one in world.view.pending_claims if one.allocation]
    assert (first.consumed_capacity, second.consumed_capacity) == ({"memory": "4Gi"}, {"memory": "6Gi"})
    assert first.share_id and second.share_id and first.share_id != second.share_id


def test_admin_access_sees_devices_in_use_and_holds_none() -> None:
    held = claim(name="other", status=allocated("g"))
    assert World(gpus("g"), claim(exactly(adminAccess=True)), held).fits() == ["n0"]
    admin = claim(name="other", status=allocated("g", adminAccess=True))
    assert World(gpus("g"), claim(), admin).fits() == ["n0"]


def test_devices_with_binding_conditions_are_passed_over() -> None:
    assert World(gpus({**device("g"), "bindingConditions": ["ready"]}), claim()).fits() == []


# --- constraints -------------------------------------------------------------------------------------------

PAIRS = [device("a", numa=0), device("b", numa=1), device("c", numa=0), device("d")]


@pytest.mark.parametrize(
    ("constraint", "count", "given"),
    [
        ({"matchAttribute": "gpu.example/numa"}, 2, ["a", "c"]),
        ({"matchAttribute": "gpu.example/numa"}, 3, None),
        ({"matchAttribute": "gpu.example/numa", "requests": ["other"]}, 3, ["a", "b", "c"]),
        ({"distinctAttribute": "gpu.example/numa"}, 2, ["a", "b"]),
        ({"distinctAttribute": "gpu.example/numa"}, 3, None),
        ({"matchAttribute": "gpu.example/absent"}, 1, None),
        ({"matchAttribute": "other.example/numa"}, 1, None),
    ],
)
def test_a_constraint_ties_devices(constraint: Any, count: int, given: list[str] | None) -> None:
    world = World(gpus(*PAIRS), claim(exactly(count=count), constraints=[constraint]))
    assert ("n0" in world.fits()) == (given is not None)
    if given is not None:
        assert world.reserve() == [[("r", name) for name in given]]


def test_a_constraint_reaches_over_requests() -> None:
    requests = (exactly("x", selectors=[cel('"numa" in device.attributes["gpu.example"]')]), exactly("y"))
    constraints = [{"requests": ["x", "y"], "matchAttribute": "gpu.example/numa"}]
    assert World(gpus(*PAIRS), claim(*requests, constraints=constraints)).reserve() == [[("x", "a"), ("y", "c")]]


def test_all_devices_against_a_constraint_are_an_error() -> None:
    world = World(
        gpus(*PAIRS),
        claim(exactly(allocationMode="All"), constraints=[{"matchAttribute": "gpu.example/numa"}]),
    )
    judged = world.judge()
    assert isinstance(judged, dict)
    assert "because a claim constraint would not be satisfied" in judged["n0"]


def test_an_unknown_constraint_is_an_error() -> None:
    judged = World(gpus("g"), claim(exactly(), constraints=[{}])).judge()
    assert isinstance(judged, dict)
    assert judged["n0"] == "claim default/c, constraint #0: empty constraint (unsupported constraint type?)"


def test_a_search_that_leads_nowhere_ends() -> None:
    devices = [device(f"g{n}", group=n % 5, other=n % 3) for n in range(30)]
    constraints = [{"matchAttribute": f"gpu.example/{name}"} for name in ("group", "other")]
    requests = [exactly(f"r{n}", count=2) for n in range(6)]
    judged = World(gpus(*devices), claim(*requests, constraints=constraints), nodes=1).judge()
    assert judged in ({"n0": CANNOT}, {"n0": "node n0: timed out trying to allocate devices"})


# --- what is taken -----------------------------------------------------------------------------------------


def test_an_allocated_claim_binds_its_pods_to_where_its_devices_are() -> None:
    world = World(gpus("g"), gpus("g", node="n1"), claim(status=allocated("g")))
    assert world.judge() == {"n0": "", "n1": NOT_HERE}


def test_an_allocated_claim_without_a_selector_is_available_everywhere() -> None:
    assert World(claim(status={"allocation": {}})).fits() == ["n0", "n1"]


def test_an_allocated_claim_whose_devices_are_not_ready_makes_its_pods_wait() -> None:
    waiting = allocated("g", bindingConditions=["ready"])
    ready = {"driver": DRIVER, "pool": "n0", "device": "g", "conditions": [{"type": "ready", "status": "True"}]}
    assert (
        World(claim(status=waiting)).judge() == "resource claim default/c waits for binding conditions of its devices"
    )
    assert World(claim(status={**waiting, "devices": [ready]})).fits() == ["n0"]


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
    assert world.judge() == "request r: device class gpu does not exist"


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
