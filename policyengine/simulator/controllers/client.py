"""What stand-ins for parts of a cluster share: calls to an API server, and following a collection for ever.

They are clients like any other, over a `Transport`: on virtual time in memory, or against a real API server.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from policyengine.clock import Clock
from policyengine.kube.http.client import ConnectionFailed, Transport

Object = dict[str, Any]
RETRY_SECONDS = 1.0
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class Caller:
    """Calls under one name."""

    def __init__(self, transport: Transport, clock: Clock, user_agent: str) -> None:
        self._transport = transport
        self._clock = clock
        self._headers = {"User-Agent": user_agent, "Accept": JSON}

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        content: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """One call's answer. Raises `Refused`, `ConnectionFailed`, and DecodeError where the answer is no JSON."""
        raw = None if body is None else msgspec.json.encode(body)
        headers = self._headers if body is None else {**self._headers, "Content-Type": content}
        response = await self._transport.request(method, path, query=query, body=raw, headers=headers, timeout=30)
        try:
            answer = await response.read()
        finally:
            await response.close()
        if response.status >= 300:
            raise Refused(response.status)
        found: Object = msgspec.json.decode(answer)
        return found

    async def follow(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[tuple[str, Object]]:
        """Every object as it is and as it changes, for ever; a broken watch begins anew.

        Before the objects of a list, and after them, there is a word: ("LIST", {}) and ("LISTED", {}).
        """
        while True:
            try:
                listed = await self.call("GET", path, query=query)
                yield "LIST", {}
                for item in listed.get("items") or []:
                    yield "ADDED", item
                yield "LISTED", {}
                version = listed["metadata"]["resourceVersion"]
                async for event in self._watch(path, {**(query or {}), "resourceVersion": version}):
                    yield event
            except (ConnectionFailed, msgspec.DecodeError, Refused):
                await self._clock.sleep(RETRY_SECONDS)

    async def _watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[tuple[str, Object]]:
        asked = {**query, "watch": "1", "allowWatchBookmarks": "true"}
        response = await self._transport.request("GET", path, query=asked, headers=self._headers)
        try:
            if response.status != 200:
                raise Refused(response.status)
            async for lines in response.lines():
                for event in map(msgspec.json.decode, lines):
                    if event["type"] == "ERROR":
                        raise Refused(410)
                    if event["type"] != "BOOKMARK":
                        yield event["type"], event["object"]
        finally:
            await response.close()
