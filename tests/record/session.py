"""Makes the calls of a recording on a server and writes down what it answers, in the recording's own format.

A recording is a list of JSON objects, one a call:

    {"name", "request": {"method", "path", "accept", "contentType", "user", "headers", "body"},
     "response": {"status", "headers", "body"}}        or "watch": [event, ...], and "ends": true where the stream ended

`path` holds the query, percent-encoded. A body that is no JSON stands as text, as `{"base64": ...}` where it is no
UTF-8, and as `{"bytes": n}` where it is longer than 20,000; then the steps say how it is made.

Beside a recording lie its steps, by the name of a call: what is done `before` it, or once its watch has begun (`then`).
A step is a request whose answer is not written down; `learn` names what the recorded server chose in it. Calls about
history that is gone are marked `past`.
"""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import yaml

from policyengine.kube.http.client import Response, Transport
from tests.record.compare import Mapping, differences
from tests.shared_facts import shared

ADMIN = "admin (system:masters)"
POOR = "a service account without rights"
UNKNOWN = "an unknown token"
NOBODY = "none"
ACCOUNT = {"namespace": "kube-system", "name": "policyengine"}
HEADERS = ("Content-Type", "Retry-After", "Warning")
PATIENCE = 15.0
AGENT = "Python/3.11 aiohttp/3.11"
HOME = Path(__file__).parent / "recordings"
TRANSLATED = ("uid", "resourceVersion", "name")

Json = dict[str, Any]
Connect = Callable[[str | None], Transport]
"""A way to the server for an Authorization header; None: as the administrator, empty: as nobody."""


def recording(original: bool = False) -> tuple[list[Json], Json]:
    """The calls of a recording and its steps; `original` is the one of 74 calls in `../shared`."""
    path = shared("recorded/apiserver-1.36.json") if original else HOME / "kube-apiserver-1.36.2.json"
    steps = HOME / ("original-steps.json" if original else "steps.json")
    return json.loads(path.read_text(encoding="utf-8")), json.loads(steps.read_text(encoding="utf-8"))


@dataclass
class Session:
    """One run of calls against one server; `calls` is what it answered."""

    connect: Connect
    compact: Callable[[], Awaitable[None]] | None = None
    """Makes the server forget its past; None where nobody here can."""
    patience: float = 0.0
    """Seconds until a write of roles is known to those who decide by them."""
    calls: list[Json] = field(default_factory=list)
    _mapping: Mapping = field(default_factory=Mapping)
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

    async def replay(self, recorded: list[Json], steps: Json) -> None:
        """Make every call in order; what the server chooses stands for what the recorded one chose."""
        await self.begin()
        for call in recorded:
            aside = steps.get(call["name"], {})
            if aside.get("past") and self.compact is None:
                continue
            await self._steps(aside.get("before", ()))
            # A watch that was refused was noted without a content type.
            watch = "watch" in call or ("watch=1" in call["request"]["path"] and "contentType" not in call["request"])
            given = await (self._watched(call, aside) if watch else self._answered(call, aside))
            for part in ("response", "watch"):
                differences(call.get(part), given.get(part), self._mapping)
            self.calls.append({"name": call["name"], "request": call["request"], **given})
        await self.end()

    async def quietly(
        self, method: str, path: str, body: Any = None, content: str = "application/json", user: str = ADMIN
    ) -> Any:
        """A call that is not written down; its body."""
        headers = {"Content-Type": content, "Accept": "application/json", "User-Agent": AGENT}
        response = await self._send(method, path, encoded(body), headers, user)
        raw = await response.read()
        await response.close()
        return json.loads(raw)

    async def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str], user: str) -> Response:
        bare, _, query = path.partition("?")
        values = dict(parse_qsl(query, keep_blank_values=True))
        return await self._transports[user].request(method, bare, query=values, body=body, headers=headers)

    async def _steps(self, steps: list[Json]) -> None:
        for step in steps:
            if "compact" in step:
                assert self.compact is not None
                await self.compact()
            elif "settle" in step:
                await asyncio.sleep(self.patience)
            else:
                content = step.get("contentType", "application/json")
                answer = await self.quietly(step["method"], step["path"], step.get("body"), content)
                for path, chosen in step.get("learn", {}).items():
                    value = answer
                    for name in path.split("."):
                        value = value[int(name) if isinstance(value, list) else name]
                    self._mapping.learn(chosen, value)

    async def _ask(self, call: Json, aside: Json) -> Response:
        asked = call["request"]
        sent = {"Accept": asked.get("accept") or "application/json", "User-Agent": AGENT}
        sent |= {name.replace("_", "-"): value for name, value in asked.get("headers", {}).items()}
        if asked.get("contentType"):
            sent["Content-Type"] = asked["contentType"]
        made = aside.get("body")
        body = made["text"].replace("...", made["part"] * made["times"]) if made else self._body(asked.get("body"))
        path = self._path(asked["path"])
        return await self._send(asked["method"], path, encoded(body), sent, asked.get("user") or ADMIN)

    def _path(self, path: str) -> str:
        """Versions are short numbers, so they are translated by name and not wherever they appear."""
        bare, _, query = path.partition("?")
        pairs = []
        for pair in query.split("&") if query else []:
            name, _, value = pair.partition("=")
            if name in ("resourceVersion", "continue"):
                value = self._mapping.ours.get(unquote(value), value)
            pairs.append(f"{name}={value}")
        return self._mapping.translate(unquote(bare)) + (f"?{'&'.join(pairs)}" if pairs else "")

    def _body(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if value.keys() == {"base64"}:
                return base64.b64decode(value["base64"])
            return {name: self._body(item, name) for name, item in value.items()}
        return self._mapping.ours.get(value, value) if isinstance(value, str) and key in TRANSLATED else value

    async def _answered(self, call: Json, aside: Json) -> Json:
        response = await self._ask(call, aside)
        raw = await response.read()
        await response.close()
        kept = {name: header(response, name) for name in HEADERS if name in response.headers}
        body = yaml.safe_load(raw) if kept.get("Content-Type") == "application/yaml" else shown(raw)
        return {"response": {"status": response.status, "headers": kept, "body": body}}

    async def _watched(self, call: Json, aside: Json) -> Json:
        """As many events as were recorded, and whether the stream ends."""
        response = await self._ask(call, aside)
        if response.status != 200:
            raw = await response.read()
            return {"response": {"status": response.status, "headers": {}, "body": shown(raw)}}
        events: list[Any] = []
        ends, finished = call.get("ends") or aside.get("ends"), False
        await self._steps(aside.get("then", []))
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                wanted = len(call.get("watch", ()))
                async for lines in response.lines():
                    events += [json.loads(line) for line in lines]
                    if len(events) >= wanted and not ends:
                        events = events[:wanted]
                        break
                else:
                    finished = True
        await response.close()
        return {"watch": events, **({"ends": True} if finished else {})}


def header(response: Response, name: str) -> str:
    """A header, or all of its name."""
    every = getattr(response.headers, "getall", None)
    return ", ".join(every(name)) if every is not None else response.headers[name]


def encoded(body: Any) -> bytes | None:
    """A body as it is sent."""
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def shown(raw: bytes) -> Any:
    """An answer's body as it is written down."""
    text = raw.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return text
