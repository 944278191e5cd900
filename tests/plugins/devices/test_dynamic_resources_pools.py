"""DynamicResources: which slices make up a pool, and which a node reaches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugins.devices.devices import (
    CANNOT,
    ZONE_0,
    World,
    claim,
    device,
    exactly,
    gpus,
    resource_slice,
)


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
