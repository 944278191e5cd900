"""The modules that one plain pod goes through, from its watch line to the POST of its binding, are those that
docs/architecture.md lists."""

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import policyengine
from policyengine.kube.watching.store import Store
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.kube.scenes import PODS, pod
from tests.kube.test_runner import World, scene

PACKAGE = Path(policyengine.__file__).parent
DOC = PACKAGE.parent / "docs" / "architecture.md"
LEFT_OUT = re.compile(
    r"(plugins|cluster|simulator)/.*|framework/(status|profile|plugin)|scheduler/(reservations|queue/queued_pods)"
)
"""Plugins, what a cluster is kept in, what stands in for the server, and records that are handed on."""
NAME = "watched"


@contextmanager
def entered(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The modules whose code runs between the two moments, without `.py`, as they become known."""
    found = {"kube/watching/reflector", "kube/http/aiohttp_transport"}
    """The caller of `apply_lines`, and what does over sockets what ours does in memory."""
    before, apply_lines, request = sys.gettrace(), Store.apply_lines, MemoryTransport.request

    def trace(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            found.add(str(path.relative_to(PACKAGE).with_suffix("")))

    def begin(store: Store[Any], lines: list[bytes]) -> Any:
        if any(b'"ADDED"' in line and f'"{NAME}"'.encode() in line for line in lines):
            sys.settrace(trace)
        return apply_lines(store, lines)

    async def end(self: MemoryTransport, method: str, path: str, **more: Any) -> Any:
        if path.endswith(f"/{NAME}/binding"):
            sys.settrace(before)
        return await request(self, method, path, **more)

    monkeypatch.setattr(Store, "apply_lines", begin)
    monkeypatch.setattr(MemoryTransport, "request", end)
    try:
        yield found
    finally:
        sys.settrace(before)


@scene
async def test_a_plain_pod_goes_through_the_modules_that_the_architecture_lists(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.make(3, pod("first"), pod("second"))
    task = world.start()
    await asyncio.sleep(5)
    with entered(monkeypatch) as found:
        await create(world.outside, PODS, pod(NAME))
        await asyncio.sleep(5)
    assert (await world.nodes_of())[NAME]
    world.stop.set()
    await task
    way = {module for module in found if not LEFT_OUT.fullmatch(module)}
    listed = re.search(r"goes through (\d+) modules.*?: (.*?)\n\n", DOC.read_text("utf-8"), re.DOTALL)
    assert listed is not None
    assert way == set(re.findall(r"`([\w/]+)\.py`", listed[2]))
    assert int(listed[1]) == len(way)
