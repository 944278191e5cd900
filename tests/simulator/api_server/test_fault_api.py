"""Faults over HTTP, and that every row of faults.md that needs the server can be said as JSON."""

import asyncio
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from policyengine.kube.http.client import ConnectionFailed
from policyengine.simulator.api_server import ApiServer, MemoryTransport, Request
from policyengine.simulator.api_server.requests import ADMIN, User
from tests.shared_facts import shared
from tests.simulator.api_server.server_bench import NODES, PODS, VirtualClock, binding, node, pod

FAULTS = "/policyengine/faults"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "api-server.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
MAPS = "/api/v1/namespaces/kube-system/configmaps"


def rows() -> dict[int, tuple[str, str]]:
    """The page's table: fault -> its name in faults.md, how it is said."""
    return {int(number): (name, said) for number, name, said in ROW.findall(PAGE.read_text(encoding="utf-8"))}


def rules(row: int) -> list[dict[str, Any]]:
    """The rules a row of the page says."""
    return [json.loads(code) for code in re.findall(r"`(\{\"effect\".*?\})`", rows()[row][1])]


SAID = [row for row in rows() if rules(row)]


class Api:
    """A server whose fault API is open, asked over its paths."""

    def __init__(self, **more: Any) -> None:
        self.clock = VirtualClock()
        self.api = ApiServer(self.clock, **{"fault_api": True, **more})

    async def ask(self, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}" if token else ""}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        response = await self.api.handle(Request(method, path, {}, headers, data))
        assert isinstance(response.body, bytes)
        text = "json" in response.headers["Content-Type"]
        return response.status, json.loads(response.body) if text else response.body.decode()


def test_the_page_has_every_fault_and_says_it_or_why_not() -> None:
    text = shared("faults.md").read_text(encoding="utf-8")
    faults = {
        int(cells[1]): cells[2].strip()
        for line in text.splitlines()
        if (cells := line.split("|"))[1:2] and cells[1].strip().isdigit()
    }
    assert {row: name for row, (name, _) in rows().items()} == faults
    assert {row for row in faults if row not in SAID} == {21, 24, 27, 28, 30, 31, 32, 33, 34, 35, 36, 38, 39}


@pytest.mark.parametrize("row", SAID)
async def test_a_row_is_taken_shown_and_lifted(row: int) -> None:
    server = Api()
    for number, rule in enumerate(rules(row), start=1):
        status, shown = await server.ask("POST", FAULTS, rule)
        assert (status, shown["number"], shown["effect"]["type"]) == (201, number, rule["effect"]["type"])
    assert len((await server.ask("GET", FAULTS))[1]["faults"]) == len(rules(row))
    assert (await server.ask("DELETE", f"{FAULTS}/1"))[0] == 200
    assert (await server.ask("DELETE", FAULTS))[0] == 200
    assert not server.api.faults.rules


@pytest.mark.parametrize(("row", "number"), [(row, n) for row in SAID for n in range(len(rules(row)))])
async def test_what_a_row_says_befalls_a_cluster_at_work(row: int, number: int) -> None:
    server = Api()
    # Chance would only make it take longer.
    await server.ask("POST", FAULTS, {**rules(row)[number], "probability": 1})
    rule = server.api.faults.rules[0]
    seen = await Tour(server).taken()
    assert rule.acted > 0
    assert seen != await Tour(Api()).taken()


class Tour:
    """A day in a cluster, and what its client saw: statuses, watch lines, broken connections, how long it all took."""

    def __init__(self, server: Api) -> None:
        self.server = server
        self.client = MemoryTransport(server.api, user_agent="policyengine/1")
        self.seen: list[Any] = []
        self.watches: list[asyncio.Future[None]] = []

    async def taken(self) -> list[Any]:
        """Take it; all that was seen."""
        self.watches = [asyncio.ensure_future(self.watch(path)) for path in (PODS, NODES)]
        await self.server.clock.settle()
        await self.call("POST", MAPS, {"metadata": {"name": "m"}})
        await self.call("POST", LEASES, {"metadata": {"name": "policyengine"}, "spec": {"holderIdentity": "a"}})
        for _ in range(4):
            await self.round()
        await self.call("GET", f"{MAPS}/m")
        for watch in self.watches:
            watch.cancel()
        await asyncio.gather(*self.watches, return_exceptions=True)
        return self.seen

    async def round(self) -> None:
        """A pod comes, waits, is bound and goes, on a node that comes and goes."""
        await self.call("POST", NODES, node("n"))
        await self.call("POST", PODS, pod("p"))
        await self.call("GET", NODES)
        await self.call("GET", PODS)
        await self.call("PATCH", f"{PODS}/p/status", {"status": {"message": "waits"}})
        await self.call("PUT", f"{LEASES}/policyengine", {"metadata": {"name": "policyengine"}, "spec": {}})
        await self.call("POST", f"{PODS}/p/binding", binding("p", "n"))
        await self.call("GET", NODES)
        await self.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
        await self.call("DELETE", f"{NODES}/n")
        await self.server.clock.advance(61)

    async def call(self, method: str, path: str, body: Any = None) -> None:
        """One call, given all the time it may need."""
        content = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        data = None if body is None else json.dumps(body).encode()
        began = self.server.clock.time
        work = asyncio.ensure_future(self.client.request(method, path, body=data, headers=content))
        await self.server.clock.settle()
        if not work.done():
            await self.server.clock.advance(120)
        try:
            response = await work
            took = self.server.clock.time - began
            self.seen.append((method, path, response.status, dict(response.headers), await response.read(), took))
        except ConnectionFailed as failed:
            self.seen.append((method, path, failed.sent))

    async def watch(self, path: str) -> None:
        """Keep what a watch says, and when."""
        lines: list[tuple[float, bytes]] = []
        self.seen.append(lines)
        query = {"watch": "1", "resourceVersion": "0", "allowWatchBookmarks": "true"}
        with suppress(ConnectionFailed):
            response = await self.client.request("GET", path, query=query)
            async for arrived in response.lines():
                lines += [(self.server.clock.time, line) for line in arrived]
            lines.append((self.server.clock.time, b"the end"))


async def test_a_fault_said_over_http_befalls_the_request_it_means_and_is_counted() -> None:
    server = Api()
    await server.ask("POST", FAULTS, {"effect": {"type": "Fail", "code": 503}, "verb": "list", "resource": "nodes"})
    assert (await server.ask("GET", PODS))[0] == 200
    assert (await server.ask("GET", NODES))[0] == 503
    assert (await server.ask("GET", NODES))[0] == 200
    assert (await server.ask("GET", f"{FAULTS}/1"))[1]["faults"][0]["acted"] == 1


async def test_clock_restart_and_compaction() -> None:
    server = Api()
    assert (await server.ask("PUT", "/policyengine/clock", {"offset": -60}))[0] == 200
    made = await server.ask("POST", NODES, node("n"))
    assert made[1]["metadata"]["creationTimestamp"] == "2025-12-31T23:59:00Z"
    assert (await server.ask("POST", "/policyengine/compact"))[0] == 200
    assert server.api.store.collection(("", "nodes")).oldest == server.api.store.revision
    assert (await server.ask("POST", "/policyengine/restart", {"seconds": 0, "forget": False}))[0] == 200


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "unexpected end of JSON input"),
        (b"[]", "a JSON object is wanted"),
        ({}, "`effect` must be an object with a `type`"),
        ({"effect": {"type": "Boil"}}, "there is no effect `Boil`; there are Delay, Fail"),
        ({"effect": {"type": "Delay"}}, "cannot be read"),
        ({"effect": {"type": "Delay", "seconds": "long"}}, "cannot be read"),
        ({"effect": {"type": "Cut", "hard": True}}, "has no field `hard`"),
        ({"effect": {"type": "Fail", "code": 200}}, "needs a `code` from 400 to 599"),
        ({"effect": {"type": "Meanwhile"}}, "needs `requests`"),
        ({"effect": {"type": "Meanwhile", "requests": [{"path": "x"}]}}, "with method, path, body"),
        ({"effect": {"type": "Cut"}, "verbs": ["get"]}, "a fault has no field `verbs`; it has effect, verb"),
        ({"effect": {"type": "Cut"}, "times": "once"}, "cannot be read"),
    ],
)
async def test_what_cannot_be_a_fault_is_refused_by_name(body: Any, why: str) -> None:
    status, answer = await Api().ask("POST", FAULTS, body)
    assert status == 400 and why in answer["message"]


async def test_it_is_shut_unless_asked_for_and_open_to_administrators_only() -> None:
    assert (await Api(fault_api=False).ask("GET", FAULTS))[0] == 404
    tokens = {"a": User(ADMIN.name, ADMIN.groups), "b": User("ann", ("system:authenticated",))}
    server = Api(tokens=tokens)
    assert (await server.ask("GET", FAULTS, token="a"))[0] == 200
    status, answer = await server.ask("GET", FAULTS, token="b")
    assert (status, answer["message"]) == (403, f'forbidden: User "ann" cannot get path "{FAULTS}"')
    assert (await server.ask("PATCH", FAULTS, token="a"))[0] == 405
    assert (await server.ask("GET", "/policyengine/other", token="a"))[0] == 404
    assert (await server.ask("GET", "/policyengine/clock", token="a"))[0] == 405
