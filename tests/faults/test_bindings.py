"""Faults 8 to 14: what becomes of bindings, and of everything where the server is in trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from policyengine.kube.http.client import Client
from policyengine.kube.http.rate_limit import Backoff
from policyengine.kube.writing import writer
from policyengine.scheduler import state
from policyengine.scheduler.binding import bind_result
from policyengine.scheduler.messages import BindFailed, BindFailure
from policyengine.scheduler.queue.backoff import BackoffQueue
from policyengine.simulator.api_server import statuses
from tests.faults.actors import meanwhile
from tests.faults.defence import fault
from tests.faults.objects import PODS, binding, pod
from tests.faults.world import World, play
from tests.faulty_server import effects

BINDINGS = {"verb": "create", "resource": "pods", "subresource": "binding", "client": "scheduler"}
READS = {"verb": "get", "resource": "pods", "client": "scheduler"}
DEAF = {"verb": "watch", "resource": "pods", "client": "scheduler", "times": None}


def deaf(world: World, event: str, seconds: float) -> None:
    """For a while the watch does not tell of such events."""
    world.faults.add(effects.Withhold(), event=event, seconds=seconds, **DEAF)


def taking_silence_for_a_no(patch: Any) -> None:
    patch.setattr(writer, "BindUnknown", lambda uid, message: BindFailed(uid, BindFailure.OVERLOADED, message))


@fault(
    8,
    "I1 I2",
    defence="an answer that leaves the outcome open keeps the reservation, and has the pod read, later each time, "
    "until that or the binding posted again tells (`kube/writing/writer.py`, `scheduler/binding/bind_result.py`)",
    taken_out="no answer counts as a refusal",
    without=taking_silence_for_a_no,
)
async def test_08_a_binding_whose_answer_is_lost(world: World) -> None:
    await world.starts_with(n1="1")
    deaf(world, "MODIFIED", 20)
    world.faults.add(effects.Drop(after=True), **BINDINGS)
    await world.pod("first")
    await asyncio.sleep(1)
    await world.pod("second")
    await asyncio.sleep(30)
    world.faults.add(effects.Delay(60.0, after=True), **BINDINGS)
    await world.node("n2", "1")
    await asyncio.sleep(100)
    world.api.restart()
    await world.settle()


AWAY = [{"key": "away", "effect": "NoSchedule"}]


async def a_taint_while_the_outcome_is_open(world: World, lands: bool) -> None:
    """`first` may not come to the node any more, and may be there; `second` tolerates the taint and waits for room."""
    await world.starts_with(n1="1")
    world.faults.add(effects.Fail(statuses.internal("etcd is slow")), **READS, times=None, seconds=20)
    world.replicas[0].wire.late.append(55.0 if lands else 1e9)
    await world.pod("first")
    await asyncio.sleep(10)
    await world.patch_node("n1", {"spec": {"taints": AWAY}})
    await world.pod("second", tolerations=[{"key": "away", "operator": "Exists"}])
    await asyncio.sleep(140)
    await world.settle()


@pytest.mark.parametrize("lands", [True, False])
def test_the_room_of_an_open_binding_that_no_longer_holds_is_free_when_nothing_can_land_any_more(lands: bool) -> None:
    async def scene(world: World) -> None:
        await a_taint_while_the_outcome_is_open(world, lands)
        placed.update(await world.where())

    placed: dict[str, str] = {}
    objections, world = play(scene)
    assert not objections, world.timeline()
    assert placed == ({"first": "n1", "second": ""} if lands else {"first": "", "second": "n1"})


@pytest.mark.parametrize("lands", [True, False])
def test_the_auditor_objects_where_that_room_is_given_away_before(lands: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the request lands or not: nobody could know."""

    async def scene(world: World) -> None:
        await a_taint_while_the_outcome_is_open(world, lands)

    monkeypatch.setattr(bind_result, "LANDS_WITHIN", 3.0)
    objections, _ = play(scene)
    assert any(one.startswith("I2") for one in objections)


def asking_nobody(patch: Any) -> None:
    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    patch.setattr(writer, "read_pod", never)


@fault(
    9,
    "I7",
    defence="a conflict has the pod read, and what is true of it is adopted (`scheduler/binding/bind_result.py`)",
    taken_out="the pod is not read",
    without=asking_nobody,
)
async def test_09_a_binding_of_a_pod_that_is_assigned_already(world: World) -> None:
    await world.node("n1", "1")
    await world.node("n2", "1", unschedulable=True)
    world.start()
    await asyncio.sleep(1)
    deaf(world, "MODIFIED", 60)
    world.faults.add(meanwhile(("POST", f"{PODS}/p/binding", binding("p", "n2"))), **BINDINGS)
    await world.pod("p")
    await asyncio.sleep(10)
    await world.settle(30)


def binding_whoever_has_the_name(patch: Any) -> None:
    original = Client.bind

    async def bind(self: Any, namespace: str, name: str, uid: str, node: str, annotations: Any) -> None:
        await original(self, namespace, name, "", node, annotations)

    patch.setattr(Client, "bind", bind)


@fault(
    10,
    "I2 I9",
    defence="a binding names the UID it was decided for; a namesake takes the old pod's place at once "
    "(`kube/http/client.py`, `cluster/view.py`)",
    taken_out="a binding names no UID",
    without=binding_whoever_has_the_name,
)
async def test_10_a_namesake_takes_the_place_of_a_pod_that_is_being_bound(world: World) -> None:
    await world.starts_with(n1="1")
    gone = ("DELETE", f"{PODS}/p", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    world.faults.add(meanwhile(gone, ("POST", PODS, pod("p", "3"))), **BINDINGS)
    world.faults.add(effects.Coalesce(), verb="watch", resource="pods", client="scheduler", event="DELETED")
    await world.pod("p", "500m")
    await world.settle()


def not_minding(failure: BindFailure) -> Callable[[Any], None]:
    """Bindings that fail so are left as they are."""

    def patched(patch: Any) -> None:
        original = state._HANDLERS[BindFailed]

        def handle(core: Any, message: BindFailed) -> None:
            if message.failure is not failure:
                original(core, message)

        patch.setitem(state._HANDLERS, BindFailed, handle)

    return patched


@fault(
    11,
    "I3 I7",
    defence="a pod that is not found gives its room back at once and is read: gone, it is dropped; there all the same, "
    "it is tried again after a backoff (`scheduler/binding/bind_result.py`)",
    taken_out="not found is no outcome",
    without=not_minding(BindFailure.NOT_FOUND),
)
async def test_11_a_binding_of_a_pod_that_is_gone(world: World) -> None:
    await world.starts_with(n1="1")
    gone = ("DELETE", f"{PODS}/p", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    world.faults.add(meanwhile(gone), **BINDINGS)
    await world.pod("p")
    deaf(world, "MODIFIED", 3)
    deaf(world, "DELETED", 3)
    await asyncio.sleep(4)
    await world.pod("waits")
    await world.settle()


@fault(
    12,
    "I8",
    defence="a refused binding backs off, longer each time, and the pod is told (`scheduler/queue/backoff.py`)",
    taken_out="there is no backoff",
    without=lambda patch: patch.setattr(BackoffQueue, "expiry", lambda self, pod: float("-inf")),
)
async def test_12_bindings_that_are_forbidden_or_invalid(world: World) -> None:
    await world.starts_with(n1="2")
    forbidden = statuses.ApiError(403, "Forbidden", 'pods "p" is forbidden')
    world.faults.add(effects.Fail(forbidden), **BINDINGS, times=None)
    await world.pod("p")
    await asyncio.sleep(12)
    told = (await world.call("GET", f"{PODS}/p"))["status"].get("conditions", [{}])[0]
    world.put("found", ("I3", "is forbidden" in told.get("message", ""), "the pod is told why it is not bound"))
    world.faults.clear()
    world.faults.add(effects.Fail(statuses.ApiError(422, "Invalid", "no such thing")), **BINDINGS, times=3)
    await world.settle()


def overhearing_retry_after(patch: Any) -> None:
    original = writer.bind_outcome

    def outcome_of(uid: str, error: Any) -> Any:
        outcome = original(uid, error)
        return replace(outcome, retry_after=0.0) if isinstance(outcome, BindFailed) else outcome

    patch.setattr(writer, "bind_outcome", outcome_of)


@fault(
    13,
    "I8",
    defence="nothing is asked again before Retry-After, and not by all at once "
    "(`scheduler/binding/bind_result.py`, `kube/http/rate_limit.py`)",
    taken_out="Retry-After is not read",
    without=overhearing_retry_after,
)
async def test_13_an_overloaded_server_that_says_when_to_come_back(world: World) -> None:
    await world.starts_with(n1="4")
    world.faults.add(effects.Overload(20), **BINDINGS, times=6)
    for number in range(4):
        await world.pod(f"p{number}")
    await asyncio.sleep(90)
    await world.settle()


@fault(
    14,
    "I8",
    defence="every reader and writer waits longer each time, spread by chance (`kube/http/rate_limit.py`)",
    taken_out="everybody tries again at once",
    without=lambda patch: patch.setattr(Backoff, "delay", lambda self, at_least=0.0, at_most=0.0: 0.05),
)
async def test_14_a_burst_of_errors_and_a_restart(world: World) -> None:
    await world.starts_with(n1="2")
    await world.pod("before")
    world.faults.add(effects.Fail(statuses.internal("etcd is slow")), client="scheduler", times=None, seconds=10)
    await world.pod("meanwhile")
    await asyncio.sleep(15)
    world.api.restart(10)
    world.faults.add(effects.Fail(statuses.ApiError(503, "ServiceUnavailable", "starting")), seconds=15, times=None)
    await asyncio.sleep(30)
    await world.settle()
