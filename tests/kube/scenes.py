"""An API server in memory and whoever works on it, on one virtual time; and tests that are played there."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from policyengine.simulator.api_server.http_requests import User
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.faulty_server.server import FaultyServer
from tests.kube.virtual_time import VirtualClock, run

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"


def pod(name: str, cpu: str = "100m", scheduler: str = "default-scheduler", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    full = {"schedulerName": scheduler, "containers": [container], **spec}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": full}


class World:
    """An API server, and a user of it."""

    def __init__(self, user: User | None = None, **server: Any) -> None:
        self.clock = VirtualClock()
        self.api = FaultyServer(self.clock, **server)
        self.outside = MemoryTransport(self.api, user=user, user_agent="test")
        self.stop = asyncio.Event()

    async def nodes(self, count: int) -> None:
        for number in range(1, count + 1):
            await create(self.outside, "/api/v1/nodes", node(f"node-{number}", "a"))

    async def call(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        raw = None if body is None else json.dumps(body).encode()
        response = await self.outside.request(method, path, body=raw, headers={"Content-Type": content})
        return json.loads(await response.read())

    async def nodes_of(self) -> dict[str, str]:
        """The node of each pod, "" for none."""
        items = (await self.call("GET", PODS))["items"]
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in items}


def scene_of(play: Callable[[Callable[[Any], Awaitable[None]]], Awaitable[None]]) -> Callable[[Any], Any]:
    """What makes a test of `async def test(world, …)`; `play` makes the world, has the test run in it, and ends it."""

    def scene(test: Any) -> Any:
        def played(**given: Any) -> None:
            async def whole() -> None:
                await play(partial(test, **given))

            run(whole())

        played.__name__, played.__doc__ = test.__name__, test.__doc__
        _, *parameters = inspect.signature(test).parameters.values()
        played.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # for pytest's fixtures
        return played

    return scene
