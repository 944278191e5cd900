"""What the API server's tests share: a clock that moves when told, a client that speaks JSON, small objects."""

import asyncio
import heapq
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from policyengine.simulator.api_server import Request
from policyengine.simulator.api_server.http_requests import Response
from tests.faulty_server.server import FaultyServer

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z


class VirtualClock:
    """Time that passes only in `advance`, which wakes sleepers in order."""

    def __init__(self) -> None:
        self.time = START
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time - START

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + seconds, next(self._order), future))
        await future

    async def settle(self) -> None:
        """Let everything run that can without time passing."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        end = self.time + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, future = heapq.heappop(self._sleepers)
            self.time = max(self.time, at)
            if not future.done():
                future.set_result(None)
            await self.settle()
        self.time = end
        await self.settle()


@dataclass
class Answer:
    """A status, headers and a JSON body."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass
class Bench:
    """A fresh server on virtual time."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    api: FaultyServer = field(init=False)
    window: int = 10_000
    tokens: Any = None

    def __post_init__(self) -> None:
        self.api = FaultyServer(self.clock, seed=7, window=self.window, tokens=self.tokens)

    async def raw(
        self, method: str, path: str, body: Any = None, content: str = "application/json", **more: Any
    ) -> Response:
        query = {name.replace("_", "-") if name == "user_agent" else name: str(v) for name, v in more.items()}
        token, accept, agent = query.pop("token", ""), query.pop("accept", ""), query.pop("user-agent", "tests/1")
        headers = {"content-type": content, "user-agent": agent, "accept": accept or "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return await self.api.handle(Request(method, path, query, headers, data))

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        response = await self.raw(method, path, body, **more)
        assert isinstance(response.body, bytes), "a stream was answered"
        text = "json" in response.headers["Content-Type"]
        return Answer(response.status, response.headers, json.loads(response.body) if text else response.body.decode())

    async def create(self, path: str, body: Any) -> Any:
        answer = await self.ask("POST", path, body)
        assert answer.status == 201, answer.body
        return answer.body

    async def watch(self, path: str, **query: Any) -> "Watch":
        response = await self.raw("GET", path, watch="1", **query)
        assert not isinstance(response.body, bytes), response.body
        return Watch(response)


class Watch:
    """A watch being read."""

    def __init__(self, response: Response) -> None:
        assert not isinstance(response.body, bytes)
        self._stream = response.body
        self._events: list[Any] = []

    async def next(self) -> Any:
        """The next event."""
        while not self._events:
            chunk = await asyncio.wait_for(anext(self._stream), 60)
            self._events += [json.loads(line) for line in chunk.splitlines()]
        return self._events.pop(0)

    async def names(self, number: int) -> list[tuple[str, str]]:
        """Type and name of the next events."""
        found = [await self.next() for _ in range(number)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in found]

    async def ended(self) -> bool:
        """Whether the stream ends without a word more."""
        try:
            await asyncio.wait_for(anext(self._stream), 60)
        except StopAsyncIteration:
            return True
        return False


PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


def pod(
    name: str, *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any
) -> Any:
    containers = [{"name": "c", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "500m"}}}]
    meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def node(name: str, **labels: str) -> Any:
    held = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": held, "allocatable": held, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def binding(name: str, node_name: str, **meta: str) -> Any:
    target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **meta}, "target": target}
