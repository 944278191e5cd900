"""An extender over HTTP that says what a test has it say, and a scheduler that asks it about an API server's pods."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from policyengine.clock import SystemClock
from policyengine.kube.config.configuration import read
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.http.client import Client
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create, node
from tests.faulty_server.server import FaultyServer
from tests.scheduler.invariants import validate

HEAD = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n"
PODS = "/api/v1/namespaces/default/pods"
NODES = ("node-1", "node-2", "node-3")
Answer = Callable[[str, Any], Any]


def configured(*extenders: dict[str, Any]) -> list[dict[str, Any]]:
    """Extenders as the configuration completes them."""
    found: list[dict[str, Any]] = read(HEAD + f"extenders: {json.dumps(list(extenders))}\n", "x").data["extenders"]
    return found


class World:
    """An extender over HTTP, an API server in memory, and a scheduler that asks the one about the other's pods."""

    def __init__(self, url: str, asked: list[tuple[str, Any]]) -> None:
        self.url = url
        self.asked = asked
        self.expected: set[str] = set()
        """Names that a test looks for among the deleted."""
        # Pods say their priority themselves, without a class.
        self.api = FaultyServer(SystemClock(), disabled_admission=("Priority",))
        self.outside = MemoryTransport(self.api, user_agent="test")
        self.scheduler: Scheduler

    async def pod(self, name: str, *, on: str = "", priority: int = 0, **resources: str) -> str:
        """A pod, bound already if `on` names a node; its UID."""
        requests = {"cpu": "100m", **resources}
        container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
        spec = {"containers": [container], "priority": priority} | ({"nodeName": on} if on else {})
        await create(self.outside, PODS, {"kind": "Pod", "metadata": {"name": name}, "spec": spec})
        uid: str = (await self.get(name))["metadata"]["uid"]
        return uid

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(20):
            while not await holds():  # noqa: ASYNC110  (polled over the API)
                await asyncio.sleep(0.02)

    async def leaving(self) -> set[str]:
        """Names of the pods that are being deleted, or have been."""
        found = json.loads(await (await self.outside.request("GET", PODS)).read())["items"]
        going = {one["metadata"]["name"] for one in found if "deletionTimestamp" in one["metadata"]}
        return going | self.expected - {one["metadata"]["name"] for one in found}

    async def get(self, name: str) -> Any:
        return json.loads(await (await self.outside.request("GET", f"{PODS}/{name}")).read())

    async def node_of(self, name: str) -> str:
        found: str = (await self.get(name))["spec"].get("nodeName", "")
        return found

    async def until_bound(self, name: str) -> str:
        async with asyncio.timeout(20):
            while not (found := await self.node_of(name)):  # noqa: ASYNC110  (polled over the API)
                await asyncio.sleep(0.02)
        return found

    async def until_told(self, name: str) -> tuple[str, str]:
        async with asyncio.timeout(20):
            while True:
                for one in (await self.get(name))["status"].get("conditions", ()):
                    if one["type"] == "PodScheduled" and one["status"] == "False":
                        return one["reason"], one["message"]
                await asyncio.sleep(0.02)


@asynccontextmanager
async def world(answer: Answer, *given: dict[str, Any]) -> AsyncIterator[World]:
    """`answer(verb, body)` is what the extender says: JSON, or a `web.Response`, or an awaitable of one."""
    asked: list[tuple[str, Any]] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        verb, body = request.match_info["verb"], await request.json()
        asked.append((verb, body))
        said = answer(verb, body)
        if isinstance(said, Awaitable):
            said = await said
        return said if isinstance(said, web.StreamResponse) else web.json_response(said)

    application = web.Application(client_max_size=1 << 26)
    application.router.add_post("/ext/{verb}", handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/ext"
    at = World(url, asked)
    for name in NODES:
        shown = node(name, "a")
        shown["status"]["allocatable"]["x.io/gpu"] = shown["status"]["capacity"]["x.io/gpu"] = "4"
        await create(at.outside, "/api/v1/nodes", shown)
    found = [HttpExtender(one) for one in configured(*({"urlPrefix": url, **one} for one in given))]
    client = Client(MemoryTransport(at.api, user_agent="scheduler"))
    at.scheduler = Scheduler(client, SystemClock(), random.Random(1), [default_profile()], extenders=found)
    stop = asyncio.Event()
    task = asyncio.ensure_future(at.scheduler.run(stop))
    try:
        yield at
        validate(at.scheduler.state)
    finally:
        stop.set()
        await task
        for extender in found:
            await extender.close()
        await runner.cleanup()


def all_pass(verb: str, body: Any) -> Any:
    if verb == "prioritize":
        return [{"Host": name, "Score": 0} for name in body["NodeNames"]]
    return {"NodeNames": body["NodeNames"], "FailedNodes": {}, "Error": ""}


def fails(verb: str, body: Any) -> web.Response:
    return web.Response(status=500)


def only(*names: str, unresolvable: bool = False) -> Answer:
    def answer(verb: str, body: Any) -> Any:
        kind = "FailedAndUnresolvableNodes" if unresolvable else "FailedNodes"
        against = {name: "not today" for name in body["NodeNames"] if name not in names}
        return {"NodeNames": [name for name in body["NodeNames"] if name in names], kind: against, "Error": ""}

    return answer


def shape(value: Any, depth: int = 3) -> Any:
    """The keys and types of a body, down to the objects' own fields."""
    if isinstance(value, dict):
        return {key: shape(item, depth - 1) if depth else None for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0], depth - 1)] if value else []
    return type(value).__name__
