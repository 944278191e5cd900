"""The 74 recorded calls of a real kube-apiserver 1.36.2, replayed in order on a fresh server.

What the recording did besides its calls (it created n2, p2 to p8, bound p8 while watching) is done here too.
"""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl, unquote

from policyengine.clock import SystemClock
from policyengine.simulator.api_server import ApiServer, Request
from policyengine.simulator.api_server.access.authentication import service_account
from policyengine.simulator.api_server.handler import DISABLED_ADMISSION
from policyengine.simulator.api_server.requests import ADMIN, Response, User
from tests.shared_facts import shared
from tests.simulator.api_server.recorded import Mapping, body_of, differences

CALLS: list[dict[str, Any]] = json.loads(shared("recorded/apiserver-1.36.json").read_text(encoding="utf-8"))
PATIENCE = 0.2
TOKENS: dict[str, User] = {
    "admin": User(ADMIN.name, ADMIN.groups),
    "poor": service_account("kube-system", "policyengine"),
}
CREDENTIALS = {
    "admin (system:masters)": "Bearer admin",
    "a service account without rights": "Bearer poor",
    "an unknown token": "Bearer nobody",
    "none": "",
}


class Clock(SystemClock):
    """The machine's clock, ten times as fast to sleep by."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 10)


class Replay:
    """One server, and what of the recording it has answered."""

    def __init__(self) -> None:
        self.api = ApiServer(Clock(), seed=1, tokens=TOKENS, disabled_admission=(*DISABLED_ADMISSION, "Priority"))
        self.mapping = Mapping()

    async def ask(self, call: dict[str, Any]) -> Response:
        asked = call["request"]
        path, _, _ = self.mapping.translate(unquote(asked["path"].replace("%2C", ","))).partition("?")
        _, _, raw_query = asked["path"].partition("?")
        headers = {"user-agent": "Python/3.11 aiohttp/3.11", "accept": asked.get("accept", "application/json")}
        credentials = CREDENTIALS[asked.get("user", "admin (system:masters)")]
        if credentials:
            headers["authorization"] = credentials
        if asked.get("contentType"):
            headers["content-type"] = asked["contentType"]
        body = self._body(call["name"], asked.get("body"))
        values = dict(parse_qsl(self._translate_query(raw_query), keep_blank_values=True))
        return await self.api.handle(Request(asked["method"], path, values, headers, body))

    def _translate_query(self, query: str) -> str:
        """Versions are short numbers, so they are translated by name and not wherever they appear."""
        out = []
        for pair in query.split("&") if query else []:
            name, _, value = pair.partition("=")
            if name in ("resourceVersion", "continue"):
                value = self.mapping.ours.get(value, value)
            out.append(f"{name}={value}")
        return "&".join(out)

    def _body(self, name: str, recorded: Any) -> bytes:
        if name == "configmap too large":
            meta = {"name": "big2", "namespace": "kube-system"}
            big = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"x": "x" * 1048577}}
            return json.dumps(big).encode()
        if isinstance(recorded, dict):
            recorded = self._translate_object(recorded)
        return body_of(recorded)

    def _translate_object(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: self._translate_object(v, k) for k, v in value.items()}
        if isinstance(value, str) and key in ("uid", "resourceVersion", "name"):
            return self.mapping.ours.get(value, value)
        return value

    async def post(self, path: str, body: dict[str, Any]) -> None:
        headers = {"user-agent": "Python/3.11", "authorization": "Bearer admin", "content-type": "application/json"}
        answer = await self.api.handle(Request("POST", path, {}, headers, json.dumps(body).encode()))
        assert answer.status == 201, answer.body

    async def events(self, response: Response, count: int) -> list[Any]:
        """The first `count` events of a watch, and whatever follows at once."""
        assert not isinstance(response.body, bytes), response.body
        text = b""
        while text.count(b"\n") < count:
            text += await asyncio.wait_for(anext(response.body), 5)
        return [json.loads(line) for line in text.splitlines()]


def named(name: str) -> dict[str, Any]:
    """A recorded call."""
    return next(call for call in CALLS if call["name"] == name)


async def before(replay: Replay, name: str) -> None:
    """What the recording did between its calls."""
    pod = named("create pod: defaults filled in")["request"]["body"]
    if name == "create node again: already exists":
        node = json.loads(json.dumps(named("create node")["request"]["body"]).replace('"n1"', '"n2"'))
        await replay.post("/api/v1/nodes", node)
    if name == "create pod with generateName":
        for number in range(2, 9):
            copy = {**pod, "metadata": {**pod["metadata"], "name": f"p{number}"}}
            await replay.post("/api/v1/namespaces/default/pods", copy)
    if name.startswith("watch from a resourceVersion older"):
        replay.api.store.compact()


async def while_watching(replay: Replay, name: str) -> None:
    """What the recording did once a watch had begun."""
    if name.startswith("watch with fieldSelector"):
        target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p8"}, "target": target}
        await replay.post("/api/v1/namespaces/default/pods/p8/binding", body)


async def compare_watch(replay: Replay, call: dict[str, Any]) -> list[str]:
    response = await replay.ask(call)
    await while_watching(replay, call["name"])
    given = await replay.events(response, len(call["watch"]))
    if "timeout" in call["name"]:
        assert not isinstance(response.body, bytes)
        rest = [line async for line in response.body]
        assert rest == [], "the stream ends by itself and says nothing more"
    await response.body.aclose()  # type: ignore[union-attr]
    return differences(call["watch"], given, replay.mapping)


async def compare_answer(replay: Replay, call: dict[str, Any]) -> list[str]:
    response, recorded = await replay.ask(call), call["response"]
    assert isinstance(response.body, bytes)
    text = response.headers["Content-Type"].startswith("application/json")
    given = json.loads(response.body) if text else response.body.decode()
    found = [] if response.status == recorded["status"] else [f"status {response.status}: {given}"]
    found += differences(recorded["headers"], response.headers, replay.mapping, "headers")
    return found + differences(recorded["body"], given, replay.mapping)


async def test_every_recorded_call_is_answered_as_the_real_server_answered_it() -> None:
    replay = Replay()
    problems: dict[str, list[str]] = {}
    for call in CALLS:
        await before(replay, call["name"])
        found = await (compare_watch if "watch" in call else compare_answer)(replay, call)
        if found:
            problems[call["name"]] = found
    assert not problems, "\n".join(f"{name}:\n  " + "\n  ".join(lines[:12]) for name, lines in problems.items())
    assert len(CALLS) == 74
