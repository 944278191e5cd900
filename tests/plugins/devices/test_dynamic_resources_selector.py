"""Devices share a selector's answer only where they are alike in all that the selector reads."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from policyengine.cluster.objects import Device, decode
from policyengine.plugins.devices.device import SelectorError, SliceDevice
from policyengine.plugins.devices.device_selector import attributes_read

DRIVER = "gpu.example"
OWN = f"device.attributes['{DRIVER}']"


@pytest.mark.parametrize(
    ("selector", "reads"),
    [
        (f"device.driver == '{DRIVER}'", set()),
        ("device.allowMultipleAllocations", set()),
        (f"{OWN}.model == 'a' && {OWN}['index'] > 1", {(DRIVER, "model"), (DRIVER, "index")}),
        ("has(device.attributes['other.example'].numa)", {("other.example", "numa")}),
        (f"device.capacity['{DRIVER}'].memory.isGreaterThan(quantity('1'))", set()),
        ("device.attributes[device.driver].model == 'a'", None),
        (f"'model' in {OWN}", None),
        (f"{OWN}.exists(name, name == 'model')", None),
        ("size(device.attributes) > 0", None),
        ("device == device", None),
        ("[device].all(d, d.driver != '')", None),
        ("device.attributes[", None),
    ],
)
def test_a_selector_reads(selector: str, reads: set[tuple[str, str]] | None) -> None:
    assert attributes_read(selector) == reads


SELECTORS = (
    f"{OWN}.model == 'a'",
    f"{OWN}.index > 0",
    f"has({OWN}.index) && {OWN}.index == 1",
    "device.attributes['other.example'].model == 'a'",
    f"device.capacity['{DRIVER}'].memory.compareTo(quantity('20Gi')) >= 0",
    f"{OWN}.index",
    f"size({OWN}) > 1",
)


def random_device(rng: Random) -> Device:
    values: tuple[dict[str, Any], ...] = (
        {"string": "a"},
        {"int": 1},
        {"int": 0},
        {"bool": True},
        {"version": "1.2.3"},
        {"version": "no version"},
        {},
    )
    names = ("model", "index", f"{DRIVER}/model", "other.example/model")
    attributes = {name: rng.choice(values) for name in names if rng.random() < 0.5}
    capacity = {"memory": {"value": rng.choice(("10Gi", "40Gi", "much"))}} if rng.random() < 0.8 else {}
    return decode(Device, {"name": "d", "attributes": attributes, "capacity": capacity})


def said(device: SliceDevice, selector: str) -> bool | str:
    try:
        return device.meets(selector)
    except SelectorError as error:
        return str(error)


def test_a_shared_answer_is_the_devices_own() -> None:
    rng = Random(5)
    for _ in range(2_000):
        device, selector = random_device(rng), rng.choice(SELECTORS)
        one = SliceDevice(DRIVER, "pool", device)
        assert said(one, selector) == (one._evaluated(selector)), (device, selector)
