"""DynamicResources: taints of devices, counters and capacities that are shared, access for admins."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugins.devices.devices import (
    CANNOT,
    World,
    allocated,
    cel,
    claim,
    device,
    exactly,
    first_of,
    gpus,
    resource_slice,
    tainted,
    using,
)


@pytest.mark.parametrize(
    ("effect", "toleration", "fits"),
    [
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


def test_counters_that_are_drawn_below_zero_give_nothing_more() -> None:
    devices = [partition("held", "9Gi"), partition("none", "0"), device("free")]
    other = claim(name="other", status=allocated("held"))
    assert World(*partitioned(*devices), claim(), other).reserve() == [[("r", "free")]]
    assert World(*partitioned(*devices), claim(exactly(count=2)), other).fits() == []


def test_two_drivers_with_a_pool_of_one_name_have_counters_of_their_own() -> None:
    own = partitioned(partition("a", "8Gi"))
    card = {"name": "card", "counters": {"memory": {"value": "8Gi"}}}
    more = [
        resource_slice(name="2", pool="n0", count=2, sharedCounters=[card], driver="other.example"),
        gpus(partition("b", "8Gi"), name="3", count=2, driver="other.example"),
    ]
    assert World(*own, *more, claim(exactly(count=2))).fits() == ["n0"]


def test_a_device_of_an_unknown_counter_makes_its_pool_invalid() -> None:
    strange = {**device("g"), "consumesCounters": [{"counterSet": "none", "counters": {"memory": {"value": 1}}}]}
    evaluated = World(*partitioned(strange), claim()).evaluate()
    assert evaluated == dict.fromkeys(("n0", "n1"), "invalid resource pools were encountered")


def shared(policy: Any = None) -> Any:
    memory = {"value": "10Gi", **({"requestPolicy": policy} if policy else {})}
    return {"name": "g", "allowMultipleAllocations": True, "capacity": {"memory": memory}}


def share_of(amount: str) -> Any:
    return exactly(capacity={"requests": {"memory": amount}})


@pytest.mark.parametrize(
    ("policy", "amount"),
    [
        (None, "11Gi"),
        (None, "lots"),
        ({"validRange": {"min": "1Gi", "max": "4Gi"}}, "5Gi"),
        ({"validValues": ["2Gi", "4Gi"]}, "5Gi"),
    ],
)
def test_more_than_there_is_or_may_be_asked_for_is_given_by_no_device(policy: Any, amount: str) -> None:
    assert World(gpus(shared(policy)), claim(share_of(amount))).fits() == []


def test_a_share_is_recorded_with_what_it_consumes() -> None:
    world = World(gpus(shared()), claim(share_of("4Gi")), claim(share_of("6Gi"), name="d"))
    world.reserve(pod=using("c", "d").info())
    first, second = [one.allocation.devices.results[0] for one in world.view.pending_claims if one.allocation]
    assert (first.consumed_capacity, second.consumed_capacity) == ({"memory": "4Gi"}, {"memory": "6Gi"})
    assert first.share_id and second.share_id and first.share_id != second.share_id


@pytest.mark.parametrize(
    ("policy", "request_", "written"),
    [
        (None, share_of("4294967296"), "4294967296"),
        (None, share_of("1500M"), "1500M"),
        (None, exactly(), "10Gi"),
        ({"default": "512Mi"}, exactly(), "512Mi"),
        ({"default": "1Gi", "validValues": ["1Gi", "3G"]}, share_of("2Gi"), "3G"),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}, share_of("1100Mi"), "2Gi"),
        ({"default": "1Gi", "validRange": {"min": "1Gi"}}, share_of("1M"), "1Gi"),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi"}}, share_of("4Gi"), "4Gi"),
    ],
)
def test_what_a_share_consumes_is_written_as_its_source_is(policy: Any, request_: Any, written: str) -> None:
    world = World(gpus(shared(policy)), claim(request_))
    world.reserve()
    ((result,),) = [one.allocation.devices.results for one in world.view.pending_claims if one.allocation]
    assert result.consumed_capacity == {"memory": written}


def test_a_request_beyond_32_devices_in_one_claim_tries_the_alternative_that_needs_fewer() -> None:
    names = [f"g{number}" for number in range(40)]
    wanted = claim(first_of({"count": 20}, {"count": 12}, name="x"), exactly("y", count=20))
    assert [len(one) for one in World(gpus(*names), wanted).reserve()] == [32]


def test_admin_access_sees_devices_in_use_and_holds_none() -> None:
    held = claim(name="other", status=allocated("g"))
    assert World(gpus("g"), claim(exactly(adminAccess=True)), held).fits() == ["n0"]
    admin = claim(name="other", status=allocated("g", adminAccess=True))
    assert World(gpus("g"), claim(), admin).fits() == ["n0"]


PAIRS = [device("a", numa=0), device("b", numa=1), device("c", numa=0), device("d")]


@pytest.mark.parametrize(
    ("constraint", "count", "given"),
    [
        ({"matchAttribute": "gpu.example/numa"}, 2, ["a", "c"]),
        ({"matchAttribute": "gpu.example/numa"}, 3, None),
        ({"matchAttribute": "gpu.example/numa", "requests": ["other"]}, 3, ["a", "b", "c"]),
        ({"distinctAttribute": "gpu.example/numa"}, 2, ["a", "b"]),
        ({"distinctAttribute": "gpu.example/numa"}, 3, ["a", "b", "c"]),  # as in v1.36 c is compared with b only
        ({"matchAttribute": "gpu.example/absent"}, 1, None),
        ({"matchAttribute": "other.example/numa"}, 1, None),
    ],
)
def test_a_constraint_ties_devices(constraint: Any, count: int, given: list[str] | None) -> None:
    world = World(gpus(*PAIRS), claim(exactly(count=count), constraints=[constraint]))
    assert ("n0" in world.fits()) == (given is not None)
    if given is not None:
        assert world.reserve() == [[("r", name) for name in given]]


def test_as_in_kube_scheduler_a_device_that_is_refused_for_a_constraint_keeps_its_counters_drawn() -> None:
    constraint = {"requests": ["y"], "matchAttribute": "gpu.example/numa"}
    slices = {**partition("b", "4Gi"), "attributes": {"numa": {"int": 0}}}, partition("a", "4Gi")
    wanted = claim(exactly("x"), exactly("y"), constraints=[constraint])
    assert World(*partitioned(*slices), wanted).fits() == []  # b for x, a for y, and a for x: a is drawn twice
    assert World(*partitioned(*slices, total="12Gi"), wanted).reserve() == [[("x", "a"), ("y", "b")]]


def test_a_constraint_reaches_over_requests() -> None:
    requests = (exactly("x", selectors=[cel('"numa" in device.attributes["gpu.example"]')]), exactly("y"))
    constraints = [{"requests": ["x", "y"], "matchAttribute": "gpu.example/numa"}]
    assert World(gpus(*PAIRS), claim(*requests, constraints=constraints)).reserve() == [[("x", "a"), ("y", "c")]]


def test_a_device_that_is_given_up_is_in_the_way_of_no_constraint() -> None:
    devices = [device(name, numa=at, side=at // 3) for at, name in enumerate("wacb")]
    apart, beside = {"distinctAttribute": "gpu.example/numa"}, {"matchAttribute": "gpu.example/side"}
    wanted = claim(*map(exactly, "wxyz"), constraints=[apart, beside | {"requests": ["y", "z"]}])
    assert World(gpus(*devices), wanted).reserve() == [[("w", "w"), ("x", "b"), ("y", "a"), ("z", "c")]]


def test_all_devices_against_a_constraint_are_an_error() -> None:
    world = World(
        gpus(*PAIRS),
        claim(exactly(allocationMode="All"), constraints=[{"matchAttribute": "gpu.example/numa"}]),
    )
    evaluated = world.evaluate()
    assert isinstance(evaluated, dict)
    assert "because a claim constraint would not be satisfied" in evaluated["n0"]


def test_an_unknown_constraint_is_an_error() -> None:
    evaluated = World(gpus("g"), claim(exactly(), constraints=[{}])).evaluate()
    assert isinstance(evaluated, dict)
    assert evaluated["n0"] == "claim default/c, constraint #0: empty constraint (unsupported constraint type?)"


def test_a_search_that_leads_nowhere_ends() -> None:
    devices = [device(f"g{n}", group=n % 5, other=n % 3) for n in range(30)]
    constraints = [{"matchAttribute": f"gpu.example/{name}"} for name in ("group", "other")]
    requests = [exactly(f"r{n}", count=2) for n in range(6)]
    evaluated = World(gpus(*devices), claim(*requests, constraints=constraints), nodes=1).evaluate()
    assert evaluated in ({"n0": CANNOT}, {"n0": "node n0: timed out trying to allocate devices"})


@pytest.mark.parametrize(
    ("slices", "fits"),
    [
        ([resource_slice("g", allNodes=False)], []),
        # a newer generation replaces all older slices
        (
            [
                resource_slice("g", node="n0", pool="x", count=2),
                resource_slice("h", node="n1", pool="x", generation=2),
            ],
            ["n1"],
        ),
        # a pool that is not whole gives nothing
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
    assert world.evaluate() == {"n0": text, "n1": CANNOT}


def test_a_pool_with_two_devices_of_a_name_is_invalid() -> None:
    assert World(gpus("g", "g"), claim()).evaluate() == {"n0": "invalid resource pools were encountered", "n1": CANNOT}


def test_devices_are_tried_by_driver_pool_slice_and_place() -> None:
    world = World(
        resource_slice("late", node="n0", pool="b", driver="z.example"),
        resource_slice("second", node="n0", pool="a", count=2, name="y", driver="a.example"),
        resource_slice("first", node="n0", pool="a", count=2, name="x", driver="a.example"),
        claim(exactly(count=3)),
    )
    assert world.reserve() == [[("r", "first"), ("r", "second"), ("r", "late")]]
