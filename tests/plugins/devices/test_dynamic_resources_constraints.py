"""DynamicResources: what the devices of a claim must have in common, or must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugins.devices.devices import (
    CANNOT,
    World,
    cel,
    claim,
    device,
    exactly,
    gpus,
)

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
