"""A replica's network: every request and every answer goes onto the tape, after a latency drawn from the seed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from random import Random
from typing import Any

from policyengine.kube.http.client import ConnectionFailed, Response
from policyengine.simulator.api_server.memory import MemoryTransport
from tests.faults.knowledge import Call

KINDS = ("pods", "nodes")
NOT_SENT = 499
Put = Callable[[str, Any], None]


class Wire:
    """A `Transport`. `jump` lets time pass at once, as for a process that is stopped and goes on."""

    def __init__(
        self, inner: MemoryTransport, who: str, put: Put, random: Random, jump: Callable[[float], None]
    ) -> None:
        self._inner = inner
        self._who = who
        self._put = put
        self._random = random
        self._jump = jump
        self.stopped_before: list[tuple[str, float]] = []
        """(end of a path, seconds): what the process is about to do when it is stopped for so long."""
        self.is_cut = False
        self.flows = asyncio.Event()
        """Cleared while the process stands still: it sends nothing, and hears nothing."""
        self.flows.set()
        self.late: list[float] = []
        """Seconds after which the next bindings arrive whose sender was told at once that the connection was lost."""
        self.still_sends: Callable[[], bool] = lambda: True
        """Whether what is late still arrives."""
        self._on_the_way: set[asyncio.Task[None]] = set()
        self.page = 0
        """Objects of a page, where lists are to come in other pages than were asked for."""

    async def request(self, method: str, path: str, **how: Any) -> Response:
        await self.flows.wait()
        before = how.pop("before", None)
        for stop in [one for one in self.stopped_before if method == "POST" and path.endswith(one[0])]:
            self.stopped_before.remove(stop)
            self._jump(stop[1])
        if before is not None:
            before()
        if self.is_cut:
            raise ConnectionFailed("no route", sent=False)
        if self.page and "limit" in (how.get("query") or {}):
            how["query"] = {**how["query"], "limit": str(self.page)}
        selected = (how.get("query") or {}).get("fieldSelector", "").partition("spec.nodeName=")[2]
        asked = f"{path}?{selected}" if selected else path
        call = Call(self._who, method, asked, json.loads(how["body"]) if how.get("body") else {})
        self._put("sent", call)
        try:
            await asyncio.sleep(self._random.choice((0.001, 0.002, 0.005, 0.02)))
            if self.late and call.is_binding:
                self._deliver(self.late.pop(0), method, path, how)
                raise ConnectionFailed("the connection was lost", sent=True)
            response = await self._inner.request(method, path, **how)
            await self.flows.wait()
        except ConnectionFailed as failed:
            call.status = 0 if failed.sent else NOT_SENT
            self._put("answered", call)
            raise
        call.status = response.status
        call.retry_after = float(response.headers.get("Retry-After", 0))
        self._put("answered", call)
        query = how.get("query") or {}
        kind = path.partition("/api/v1/")[2].partition("/")[0]
        if response.status == 200 and method == "GET" and (kind in KINDS or "/pods/" in path):
            is_part = bool(selected) or "continue" in query
            return Heard(response, self._who, self.flows, self._put, kind if kind in KINDS else "pods", is_part)
        return response

    def _deliver(self, seconds: float, method: str, path: str, how: dict[str, Any]) -> None:
        async def deliver() -> None:
            await asyncio.sleep(seconds)
            if self.still_sends():
                await self._inner.request(method, path, **how)

        task = asyncio.ensure_future(deliver())
        self._on_the_way.add(task)
        task.add_done_callback(self._on_the_way.discard)

    async def close(self) -> None:
        for task in self._on_the_way:
            task.cancel()
        await self._inner.close()


class Heard:
    """An answer whose objects go onto the tape as they are read. `goes_on`: it shows a part of what there is."""

    def __init__(self, inner: Response, who: str, flows: asyncio.Event, put: Put, kind: str, goes_on: bool) -> None:
        self._inner = inner
        self._who = who
        self._flows = flows
        self._put = put
        self._kind = kind
        self._goes_on = goes_on
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers

    async def read(self) -> bytes:
        body = await self._inner.read()
        answer = json.loads(body)
        if answer["kind"].endswith("List"):
            self._listed(answer)
        else:
            self._put("shown", (self._who, self._kind, "READ", answer))
        return body

    def _listed(self, answer: dict[str, Any]) -> None:
        items = answer["items"]
        for item in items:
            self._put("shown", (self._who, self._kind, "LISTED", item))
        if self._goes_on or answer["metadata"].get("continue"):
            return  # of several pages; what went meanwhile the watch says
        key = "uid" if self._kind == "pods" else "name"
        keys = {item["metadata"][key] for item in items}
        self._put("listed", (self._who, self._kind, keys, int(answer["metadata"]["resourceVersion"])))

    async def lines(self) -> AsyncIterator[list[bytes]]:
        async for lines in self._inner.lines():
            await self._flows.wait()
            for line in lines:
                self._hear(line)
            yield lines

    def _hear(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            what, item = event["type"], event["object"]
        except (ValueError, KeyError):
            return
        if what in ("ADDED", "MODIFIED", "DELETED"):
            self._put("shown", (self._who, self._kind, what, item))

    async def close(self) -> None:
        await self._inner.close()
