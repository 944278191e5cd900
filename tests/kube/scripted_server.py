"""A transport that answers from a script, and remembers what it was asked."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from policyengine.kube.http.client import ConnectionFailed


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    at: float


@dataclass
class Answer:
    """A scripted answer. `lines` makes a stream; its elements are bytes, seconds of silence, or an exception."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    lines: list[Any] | None = None
    after: float = 0.0
    closed: bool = False

    async def read(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    async def iterate(self) -> AsyncIterator[bytes]:
        for item in self.lines or ():
            if isinstance(item, Exception):
                raise item
            if isinstance(item, int | float):
                await asyncio.sleep(item)
            else:
                yield item if isinstance(item, bytes) else json.dumps(item).encode()

    async def close(self) -> None:
        self.closed = True


class Opened:
    """The response of an `Answer`."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def read(self) -> bytes:
        return await self._answer.read()

    async def lines(self) -> AsyncIterator[list[bytes]]:
        async for text in self._answer.iterate():
            yield text.split(b"\n")

    async def close(self) -> None:
        await self._answer.close()


Script = Answer | ConnectionFailed
Handler = Callable[[Asked], Script | None]


class ScriptedServer:
    """Answers in the order of its script; a handler may answer instead. When both are at an end it never answers."""

    def __init__(self, *script: Script, handler: Handler | None = None) -> None:
        self.script = deque(script)
        self.handler = handler
        self.asked: list[Asked] = []
        self.reached = 10**9
        """What it says of itself when it is asked how far it has come, which is no part of the script."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Opened:
        if (query or {}).get("fieldSelector") == "metadata.name=kube-system":
            return Opened(listed(self.reached))
        content = json.loads(body) if body else None
        now = asyncio.get_running_loop().time()
        asked = Asked(method, path, dict(query or {}), dict(headers or {}), content, now)
        self.asked.append(asked)
        answer = self.handler(asked) if self.handler is not None else None
        if answer is None:
            if not self.script:
                await asyncio.sleep(1e9)
            answer = self.script.popleft()
        if isinstance(answer, ConnectionFailed):
            raise answer
        if answer.after:
            await asyncio.sleep(answer.after)
        return Opened(answer)

    async def close(self) -> None:
        pass


def config_map(name: str, version: int | str, uid: str = "") -> dict[str, Any]:
    """An object small enough for tests that care for its version only."""
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, "data": {"v": str(version)}}


def listed(version: int | str, *items: dict[str, Any], continue_: str = "") -> Answer:
    return Answer(body={"metadata": {"resourceVersion": str(version), "continue": continue_}, "items": list(items)})


def watched(*lines: Any) -> Answer:
    return Answer(lines=list(lines))


def event(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}


def bookmark(version: int) -> dict[str, Any]:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def failure(code: int, reason: str = "", message: str = "no", retry_after: str = "") -> Answer:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return Answer(code, status, {"Retry-After": retry_after} if retry_after else {})


def gone() -> dict[str, Any]:
    return event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})
