"""Calls to an API server, written down in the format of the recorded file: a list of JSON objects, one a call.

    {"name", "request": {"method", "path", "accept", "contentType", "user", "body"},
     "response": {"status", "headers", "body"}}        or "watch": [event, ...], and "ends": true where the stream ended

`path` holds the query, percent-encoded. A body that is no JSON stands as text, as `{"base64": ...}` where it is no
UTF-8, and as `{"bytes": n}` where it is longer than `LONGEST`.
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import yaml

from policyengine.kube.http.transport import Response, Transport

ADMIN = "admin (system:masters)"
POOR = "a service account without rights"
UNKNOWN = "an unknown token"
NOBODY = "none"
ACCOUNT = {"namespace": "kube-system", "name": "policyengine"}
HEADERS = ("Content-Type", "Retry-After", "Warning")
LONGEST = 20_000
PATIENCE = 15.0
AGENT = "Python/3.11 aiohttp/3.11"

Connect = Callable[[str | None], Transport]
"""A way to the server for an Authorization header; None: as the administrator, empty: as nobody."""


@dataclass
class Session:
    """One run of calls against one server; `calls` is the recording."""

    connect: Connect
    calls: list[dict[str, Any]] = field(default_factory=list)
    compact: Callable[[], Awaitable[None]] | None = None
    """Makes the server forget its past; None where nobody here can."""
    patience: float = 0.0
    """Seconds until a write of roles is known to those who decide by them."""
    _transports: dict[str, Transport] = field(default_factory=dict)

    async def begin(self) -> None:
        """Make the service account without rights, and a token for it."""
        self._transports[ADMIN] = self.connect(None)
        home = f"/api/v1/namespaces/{ACCOUNT['namespace']}/serviceaccounts"
        await self.quietly("POST", home, {"metadata": {"name": ACCOUNT["name"]}})
        made = await self.quietly("POST", f"{home}/{ACCOUNT['name']}/token", {"spec": {}})
        self._transports[POOR] = self.connect(f"Bearer {made['status']['token']}")
        self._transports[UNKNOWN] = self.connect("Bearer nobody-has-this")
        self._transports[NOBODY] = self.connect("")

    async def end(self) -> None:
        """Close every connection."""
        for transport in self._transports.values():
            await transport.close()

    async def settle(self) -> None:
        """Wait until what was written about rights holds."""
        await asyncio.sleep(self.patience)

    def as_user(self, user: str, token: str) -> None:
        """Know one more user, by a token of theirs."""
        self._transports[user] = self.connect(f"Bearer {token}")

    async def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str], user: str) -> Response:
        transport = self._transports[user]
        bare, _, query = path.partition("?")
        values = dict(parse_qsl(query, keep_blank_values=True))
        return await transport.request(method, bare, query=values, body=body, headers=headers)

    async def quietly(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """A call that is not written down; its body."""
        headers = {"Content-Type": content, "Accept": "application/json", "User-Agent": AGENT}
        response = await self._send(method, path, encoded(body), headers, ADMIN)
        raw = await response.read()
        await response.close()
        return json.loads(raw)

    async def ask(
        self,
        name: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        accept: str = "application/json",
        content: str | None = None,
        user: str = ADMIN,
        **headers: str,
    ) -> Any:
        """One call; its body. `headers` are further ones, `_` for `-`."""
        content = content or ("application/json" if body is not None else None)
        sent = {"Accept": accept, "User-Agent": AGENT, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if content:
            sent["Content-Type"] = content
        response = await self._send(method, path, encoded(body), sent, user)
        raw = await response.read()
        await response.close()
        said = {"method": method, "path": path, "accept": accept, "contentType": content, "user": user}
        request = {**said, **({"headers": headers} if headers else {}), "body": shown_body(body)}
        kept = {key: header(response, key) for key in HEADERS if key in response.headers}
        answered = yaml.safe_load(raw) if kept.get("Content-Type") == "application/yaml" else shown(raw)
        answer = {"status": response.status, "headers": kept, "body": answered}
        self.calls.append({"name": name, "request": request, "response": answer})
        return answered

    async def watch(
        self,
        name: str,
        path: str,
        count: int,
        then: Callable[[], Awaitable[Any]] | None = None,
        *,
        ends: bool = False,
        user: str = ADMIN,
    ) -> list[Any]:
        """A watch: what it says while (and after) `then` runs, `count` events; `ends`: wait for its end as well."""
        response = await self._send("GET", path, None, {"Accept": "application/json", "User-Agent": AGENT}, user)
        request = {"method": "GET", "path": path, "accept": "application/json", "user": user, "body": None}
        if response.status != 200:
            raw = await response.read()
            answer = {"status": response.status, "headers": {}, "body": shown(raw)}
            self.calls.append({"name": name, "request": request, "response": answer})
            return []
        events: list[Any] = []
        finished = False
        if then is not None:
            await then()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                async for line in response.lines():
                    events.append(json.loads(line))
                    if len(events) == count and not ends:
                        break
                else:
                    finished = True
        await response.close()
        call = {"name": name, "request": request, "watch": events}
        self.calls.append({**call, "ends": True} if finished else call)
        return events


def header(response: Response, name: str) -> str:
    """A header, or all of its name."""
    every = getattr(response.headers, "getall", None)
    return ", ".join(every(name)) if every is not None else response.headers[name]


def encoded(body: Any) -> bytes | None:
    """A body as it is sent."""
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def shown_body(body: Any) -> Any:
    """A request's body as it is written down."""
    raw = encoded(body)
    if raw is not None and len(raw) > LONGEST:
        return {"bytes": len(raw)}
    if isinstance(body, bytes):
        try:
            return body.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(body).decode()}
    return body


def shown(raw: bytes) -> Any:
    """An answer's body as it is written down."""
    text = raw.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return text
