"""How far a search may go: `filterTimeout`, counted in looks at devices."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.framework.evaluator import Evaluator
from policyengine.plugins.registry import build, in_tree_profile
from tests.plugins.devices.devices import CANNOT, World, claim, device, exactly, gpus

LATE = "node n0: timed out trying to allocate devices"


def world(timeout: str | None, *items: Any) -> World:
    made = World(*items, nodes=1)
    made.plugin = build("DynamicResources", {} if timeout is None else {"filterTimeout": timeout})
    made.evaluator = Evaluator(in_tree_profile("p", "s", "", {"DynamicResources": (made.plugin, None)}))
    return made


def hopeless(groups: int) -> list[Any]:
    """Three devices of one group are wanted twice; each group has four and a half of them, so to speak."""
    devices = [device(f"g{number}", group=number % groups) for number in range(5 * groups)]
    requests = [exactly(f"r{number}", count=3) for number in range(2)]
    constraints = [{"matchAttribute": "gpu.example/group"}]
    return [gpus(*devices), claim(*requests, constraints=constraints)]


@pytest.mark.parametrize(
    ("timeout", "groups", "answer"),
    [("10ms", 6, LATE), ("0s", 6, CANNOT), (None, 2, CANNOT), (None, 60, LATE)],
)
def test_a_search_that_leads_nowhere_is_given_up_in_time(timeout: str | None, groups: int, answer: str) -> None:
    assert world(timeout, *hopeless(groups)).evaluate() == {"n0": answer}


def test_a_search_that_goes_straight_is_never_given_up() -> None:
    names = [f"g{number}" for number in range(128)]
    assert world("1ns", gpus(*names), claim(exactly(count=32))).fits() == ["n0"]


def test_too_few_devices_are_noticed_before_any_is_tried() -> None:
    names = [f"g{number}" for number in range(30)]
    assert world("1ns", gpus(*names), claim(exactly(count=31))).evaluate() == {"n0": CANNOT}


def test_a_search_that_was_given_up_is_an_error_and_so_tried_again() -> None:
    made = world("10ms", *hopeless(6))
    assert made.evaluate() == {"n0": LATE}
    devices = [device(f"g{number}", group=0) for number in range(6)]
    made.see(gpus(*devices, version=2))
    assert made.fits() == ["n0"]
