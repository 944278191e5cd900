"""Faults 1 to 7: faults of lists and watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partialmethod
from typing import Any

import msgspec

from policyengine.cluster import view
from policyengine.kube.http.client import ApiError
from policyengine.kube.watching import reflector, store
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.store import Store
from policyengine.simulator.api_server import statuses
from tests.faults.defence import fault
from tests.faults.objects import PODS
from tests.faults.world import World
from tests.faulty_server import effects

HEARD = {"verb": "watch", "client": "scheduler", "resource": "pods"}


def trusting_any_410(patch: Any) -> None:
    original = Reflector._request

    async def request(self: Any) -> AsyncGenerator[Any, None]:
        try:
            async for batch in original(self):
                yield batch
        except ApiError as error:
            raise ApiError(500, "", "taken for any other failure") from error

    patch.setattr(Reflector, "_request", request)


@fault(
    1,
    "I3 I7",
    defence="a 410, at the start or within the stream, ends the session: list again, compare "
    "(`kube/watching/reflector.py`)",
    taken_out="a 410 is retried like any failure, from the same version",
    without=trusting_any_410,
)
async def test_01_history_forgotten_while_a_watch_is_broken_or_in_the_middle_of_one(world: World) -> None:
    await world.node("n1", "2")
    await world.pod("before")
    world.start()
    await asyncio.sleep(2)
    world.faults.add(effects.Expire(), **HEARD)
    await world.pod("first")
    await asyncio.sleep(20)
    world.faults.add(effects.Fail(statuses.expired("too old resource version")), **HEARD)
    world.faults.add(effects.Drop(reached=False), client="scheduler", times=None, seconds=3)
    world.api.restart()
    await world.delete("before")
    await world.pod("second")
    await world.settle(120)


@fault(
    2,
    "I3 I7",
    defence="silence on a watch ends it, and the next resumes from the last version (`kube/watching/reflector.py`)",
    taken_out="a silent connection is waited for without end",
    without=lambda patch: patch.setattr(Reflector, "__init__", partialmethod(Reflector.__init__, stall_after=1e9)),
)
async def test_02_cut_and_half_open_and_silent_connections(world: World) -> None:
    await world.starts_with(2, n1="3")
    for number, effect in enumerate((effects.Cut(), effects.Drop(), effects.Stall(1e8))):
        world.faults.add(effect, **HEARD)
        await world.pod(f"p{number}")
        await asyncio.sleep(5)
    await world.settle()


def believing_any_version(patch: Any) -> None:
    for module in (store, reflector):
        patch.setattr(module, "number", lambda version: 0)
    patch.setattr(view, "version_is_newer", lambda new, old: True)


def counting_every_event(patch: Any) -> None:
    believing_any_version(patch)
    patch.setattr(view.ClusterView, "_replace", lambda self, old, new: self._enter(new))


@fault(
    3,
    "I3",
    defence="an object's row is rewritten, never added to; a version seen before is no news (`cluster/view.py`)",
    taken_out="every event of a bound pod counts its requests once more",
    without=counting_every_event,
)
async def test_03_events_that_come_twice(world: World) -> None:
    world.faults.add(effects.Duplicate(), **HEARD, times=None)
    await world.starts_with(n1="3")
    for number in range(3):
        await world.pod(f"p{number}")
        await asyncio.sleep(2)
    await asyncio.sleep(20)
    await world.settle()


@fault(
    4,
    "I1 I2 I7",
    defence="no object and no list goes back behind a version seen before "
    "(`kube/watching/reflector.py`, `cluster/view.py`)",
    taken_out="what came last counts",
    without=believing_any_version,
)
async def test_04_an_older_list_after_a_failover_and_events_out_of_order(world: World) -> None:
    await world.node("n1", "1")
    await world.pod("p")
    world.start()
    await asyncio.sleep(5)
    world.faults.add(effects.Fail(statuses.expired("too old resource version")), **HEARD)
    world.faults.add(effects.Stale(2), verb="list", resource="pods", client="scheduler")
    world.api.restart(forget=False)
    await asyncio.sleep(30)
    world.faults.add(effects.Reorder(), **HEARD)
    await world.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "1"}}}, "application/merge-patch+json")
    await world.delete("p")
    await world.settle()


def taking_lists_as_additions(patch: Any) -> None:
    patch.setattr(Store, "forget_keys", lambda self, keys, version: [])


@fault(
    5,
    "I3 I7",
    defence="a list is compared with what is known: what it has no more is deleted (`kube/watching/reflector.py`)",
    taken_out="a list only adds",
    without=taking_lists_as_additions,
)
async def test_05_a_deletion_nobody_told_of(world: World) -> None:
    await world.node("n1", "1")
    await world.pod("stays-no-more")
    world.start()
    await asyncio.sleep(2)
    await world.pod("waits")
    world.faults.add(effects.Withhold(), **HEARD, event="DELETED")
    world.faults.add(effects.Withhold(), **HEARD, event="MODIFIED", times=None, seconds=5)
    await world.delete("stays-no-more")
    await asyncio.sleep(10)
    world.api.restart()
    await world.settle()


def trusting_event_types(patch: Any) -> None:
    original = Store._apply

    def apply(self: Any, line: bytes) -> Any:
        event = msgspec.json.decode(line) if line.strip() else {}
        meta = event.get("object", {}).get("metadata", {})
        key = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
        if event.get("type") == "MODIFIED" and key not in self._seen:
            self._advance(meta["resourceVersion"])
            return None  # of what was not added there is nothing to modify
        return original(self, line)

    patch.setattr(Store, "_apply", apply)


@fault(
    6,
    "I3 I7",
    defence="what an event says its object is counts, not what kind of event it is (`scheduler/event_handlers.py`)",
    taken_out="an update of an object that was not added is passed over",
    without=trusting_event_types,
)
async def test_06_no_bookmarks_and_updates_merged_into_one(world: World) -> None:
    world.faults.add(effects.NoBookmarks(), client="scheduler", times=None)
    await world.starts_with(2, n1="2")
    world.faults.add(effects.Withhold(), **HEARD, event="ADDED")
    await world.pod("p")
    await asyncio.sleep(1)
    await world.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "1"}}}, "application/merge-patch+json")
    await asyncio.sleep(700)
    await world.settle(60)


def failing_on_garbage(patch: Any) -> None:
    original = store._decode_event

    def decode(line: bytes) -> Any:
        try:
            return original(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RuntimeError("not JSON") from error

    patch.setattr(store, "_decode_event", decode)


@fault(
    7,
    "I3",
    defence="a line that cannot be read ends the request, and nothing of it is applied (`kube/watching/store.py`)",
    taken_out="the failure is nobody's to catch, and ends the process",
    without=failing_on_garbage,
    dies="RuntimeError: not JSON",
)
async def test_07_truncated_lines_and_garbage(world: World) -> None:
    await world.starts_with(2, n1="4")
    broken = (effects.Garble(), effects.Garble(b"}{\n"), effects.Garble(b"\xff\xfe\n"), effects.Truncate())
    for number, effect in enumerate(broken):
        world.faults.add(effect, verb="watch", client="scheduler")
        await world.pod(f"p{number}")
        await asyncio.sleep(40)
    await world.settle()


@fault(
    7,
    "I3 I7",
    defence="a watch that the server refuses, from a version that is no number, is begun anew, with a list "
    "(`kube/watching/reflector.py`)",
    taken_out="it is tried again from there like any failure",
    without=lambda patch: patch.setattr(Reflector, "_begins_anew", lambda self, error: error.status == 410),
)
async def test_07_a_version_that_is_no_number(world: World) -> None:
    await world.starts_with(2, n1="3")
    bookmark = (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"latest"}}}\n'
    )
    world.faults.add(effects.Garble(bookmark), **HEARD)
    await world.pod("first")
    await asyncio.sleep(5)
    await world.pod("second")
    await world.settle()
