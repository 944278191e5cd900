"""Devices that must be ready before their pod is bound: how long they are waited for, what is said."""

from __future__ import annotations

from typing import Any

import pytest

from policyengine.cluster.objects import format_time
from policyengine.plugins.devices.dynamic_resources import DynamicResources
from policyengine.plugins.registry import build, in_tree_profile
from policyengine.scheduler.actions import Action, RecordEvent
from policyengine.scheduler.messages import ObjectPatched, Tick
from tests.builders import make_pod
from tests.plugins.devices.devices import (
    DRIVER,
    NOT_HERE,
    World,
    allocated,
    claim,
    device,
    device_class,
    gpus,
    using,
)
from tests.scheduler.driver import NAME, START, Driver, binds, conditions, node
from tests.scheduler.storage import patches, seen

CONDITIONS: Any = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
SLOW = {**device("g"), **CONDITIONS}
BROKEN = {"type": "broken", "status": "True", "reason": "Smoke", "message": 'it "burns"'}
READY = {"type": "ready", "status": "True"}
FAILED = 'device binding failed: claim=c, reason=Smoke, message="it \\"burns\\""'


def said(*conditions: Any, name: str = "g") -> Any:
    """What the driver has written about the device."""
    return {"driver": DRIVER, "pool": "n0", "device": name, "conditions": list(conditions)}


def given(*devices: Any, at: float = START, users: tuple[str, ...] = (), names: tuple[str, ...] = ("g",)) -> Any:
    """The status of a claim with devices that have conditions, allocated at a time."""
    status = allocated(*names, users=users, **CONDITIONS)
    status["allocation"]["allocationTimestamp"] = format_time(at)
    return {**status, "devices": list(devices)}


def test_the_allocation_names_the_conditions_of_its_devices() -> None:
    world = World(gpus(SLOW), claim())
    world.reserve()
    ((result,),) = [one.allocation.devices.results for one in world.view.pending_claims if one.allocation]
    assert (result.binding_conditions, result.binding_failure_conditions) == (("ready",), ("broken",))


# --- a claim that is allocated ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("devices", "now", "available"),
    [
        ([], 1600, True),
        ([], 1601, False),
        ([said()], 1601, False),
        ([said(READY)], 9999, True),
        ([said(BROKEN)], 1000, False),
        ([said({**BROKEN, "status": "False"})], 1600, True),
        ([said({**READY, "status": "Unknown"})], 1601, False),
        ([said(READY, name="other")], 1601, False),
    ],
)
def test_a_claim_whose_devices_failed_or_were_late_is_available_nowhere(
    devices: list[Any], now: float, available: bool
) -> None:
    world = World(gpus(SLOW), claim(status=given(*devices)))
    world.view.now = now
    assert world.evaluate() == {"n0": "" if available else NOT_HERE, "n1": NOT_HERE}


def test_a_claim_becomes_late_with_time_alone() -> None:
    world = World(gpus(SLOW), claim(status=given()))
    pod = using("c").info()
    for now, fits in ((START, ["n0"]), (START + 600, ["n0"]), (START + 601, [])):
        world.view.now = now
        assert world.fits(pod) == fits


def test_a_claim_without_a_time_of_allocation_is_never_late() -> None:
    world = World(gpus(SLOW), claim(status=allocated("g", **CONDITIONS)))
    world.view.now = 1e9
    assert world.fits() == ["n0"]


def test_the_first_device_that_is_not_ready_decides() -> None:
    status = given(said(BROKEN, name="h"), names=("g", "h"))
    world = World(gpus(SLOW, {**SLOW, "name": "h"}), claim(status=status))
    world.view.now = START
    assert world.fits() == ["n0"]


# --- PreBind ----------------------------------------------------------------------------------------------


def scheduler(*items: Any, timeout: str | None = None) -> Driver:
    arguments = {} if timeout is None else {"bindingTimeout": timeout}
    plugins = {"DynamicResources": (build("DynamicResources", arguments), None)}
    driver = Driver(in_tree_profile("p", NAME, "", plugins))
    driver.observe(device_class(), gpus(SLOW), *(items or (claim(),)))
    driver.see(node("n0"), node("n1"))
    return driver


def shown(driver: Driver, *devices: Any, version: int, at: float = START) -> list[Action]:
    """The watch shows the claim, reserved for the pod."""
    item = claim(version=version, status=given(*devices, at=at, users=("p",)))
    return [action for message in [*seen(item), Tick()] for action in driver.send(message)]


def waiting(*items: Any, timeout: str | None = None) -> Driver:
    """The pod's claim is written and seen, its device not ready."""
    driver = scheduler(*items, timeout=timeout)
    driver.see(using("c"))
    (finalizer,) = patches(driver.cycle())
    (status,) = patches(driver.send(ObjectPatched(finalizer, "2")))
    allocation = status.patch.patch["status"]["allocation"]  # type: ignore[index]
    assert allocation["allocationTimestamp"] == format_time(START)
    assert driver.send(ObjectPatched(status, "3")) == []
    (event,) = shown(driver, version=3)
    assert isinstance(event, RecordEvent)
    assert (event.type, event.reason, event.action) == ("Normal", "BindingConditionsPending", "Scheduling")
    assert event.note == "waiting for binding conditions for device on node n0"
    return driver


def test_the_pod_is_bound_once_its_device_is_ready() -> None:
    driver = waiting()
    assert binds(shown(driver, said(), version=4)) == {}
    assert binds(shown(driver, said(READY), version=5)) == {"p": "n0"}


def test_a_device_that_fails_ends_the_attempt() -> None:
    driver = waiting()
    told = conditions(shown(driver, said(BROKEN), version=4))
    assert told == [("SchedulerError", f'running PreBind plugin "DynamicResources": {FAILED}')]


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 600.0), ("20s", 20.0)])
def test_devices_are_waited_for_no_longer_than_bindingtimeout(timeout: str | None, seconds: float) -> None:
    driver = waiting(timeout=timeout)
    assert driver.state.next_wakeup() == START + seconds
    driver.now = START + seconds - 0.1
    assert driver.send(Tick()) == []
    driver.now = START + seconds
    text = "device binding timeout: context deadline exceeded"
    assert conditions(driver.send(Tick())) == [("SchedulerError", f'running PreBind plugin "DynamicResources": {text}')]


def test_a_claim_that_another_pod_has_waited_for_in_vain_ends_the_attempt() -> None:
    driver = scheduler(claim(status=given(at=START)))
    driver.now = START + 590
    driver.see(using("c"))
    (status,) = patches(driver.cycle())
    driver.send(ObjectPatched(status, "3"))
    shown(driver, version=3)
    driver.now = START + 601
    text = "device binding timeout: claim=c"
    actions = driver.send(Tick())
    assert conditions(actions)[0] == ("SchedulerError", f'running PreBind plugin "DynamicResources": {text}')


def test_a_pod_whose_claim_was_reserved_before_a_restart_waits_as_well() -> None:
    driver = scheduler(claim(status=given(users=("p",))))
    driver.see(using("c"))
    actions = driver.cycle()
    assert binds(actions) == {} and patches(actions) == []
    assert [one.reason for one in actions if isinstance(one, RecordEvent)] == ["BindingConditionsPending"]
    assert binds(shown(driver, said(READY), version=4)) == {"p": "n0"}


def test_a_pod_without_claims_never_asks_what_is_late() -> None:
    plugin, pod = DynamicResources(), make_pod("p").info()
    assert plugin.situation(pod, World().view.snapshot()) == ()
