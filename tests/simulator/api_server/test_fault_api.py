"""Faults over HTTP, and that every row of faults.md that needs the server can be said as JSON."""

import json
from typing import Any

import pytest

from policyengine.simulator.api_server import ApiServer, Request
from policyengine.simulator.api_server.requests import ADMIN, User
from tests.shared_facts import shared
from tests.simulator.api_server.server_bench import NODES, PODS, VirtualClock, binding, node

FAULTS = "/policyengine/faults"
HAND_MADE = {"method": "POST", "path": f"{PODS}/p/binding", "body": binding("p", "n")}
DELETED = {"method": "DELETE", "path": f"{NODES}/n"}
# Which faults of faults.md the server plays a part in, and how each is said.
SAID: dict[int, list[dict[str, Any]]] = {
    1: [{"effect": {"type": "Expire"}, "verb": "watch"}, {"effect": {"type": "Fail", "code": 410}, "verb": "watch"}],
    2: [{"effect": {"type": "Cut"}}, {"effect": {"type": "Stall", "seconds": 600}}, {"effect": {"type": "Drop"}}],
    3: [{"effect": {"type": "Duplicate"}, "times": None, "probability": 0.1}],
    4: [{"effect": {"type": "Stale", "revisions": 5}, "verb": "list"}, {"effect": {"type": "Reorder"}}],
    5: [{"effect": {"type": "Withhold"}, "event": "DELETED"}],
    6: [{"effect": {"type": "NoBookmarks"}, "times": None}, {"effect": {"type": "Withhold"}, "event": "MODIFIED"}],
    7: [
        {"effect": {"type": "Garble"}},
        {"effect": {"type": "Garble", "text": "}{\n"}},
        {"effect": {"type": "Truncate"}},
    ],
    8: [{"effect": {"type": "Drop", "after": True}}, {"effect": {"type": "Delay", "seconds": 60, "after": True}}],
    9: [{"effect": {"type": "Meanwhile", "requests": [HAND_MADE]}, "verb": "create", "subresource": "binding"}],
    10: [{"effect": {"type": "Coalesce"}, "event": "DELETED"}, {"effect": {"type": "Fail", "code": 409}}],
    11: [{"effect": {"type": "Fail", "code": 404}, "verb": "create", "subresource": "binding"}],
    12: [{"effect": {"type": "Fail", "code": 403}}, {"effect": {"type": "Fail", "code": 422}}],
    13: [
        {"effect": {"type": "Overload", "retry_after": 2}},
        {"effect": {"type": "Fail", "code": 429, "retryAfterSeconds": 1}},
    ],
    14: [{"effect": {"type": "Fail", "code": 500}, "seconds": 10}, {"effect": {"type": "Fail", "code": 503}}],
    15: [{"effect": {"type": "Meanwhile", "requests": [DELETED]}, "verb": "create", "subresource": "binding"}],
    16: [{"effect": {"type": "Meanwhile", "requests": [{**DELETED, "method": "PATCH", "body": {}}]}}],
    17: [{"effect": {"type": "Meanwhile", "requests": [DELETED, {**DELETED, "method": "POST", "path": NODES}]}}],
    18: [{"effect": {"type": "Meanwhile", "requests": [HAND_MADE], "after": True}, "verb": "create"}],
    19: [{"effect": {"type": "Drop", "after": True}, "client": "policyengine"}],
    20: [{"effect": {"type": "Delay", "seconds": 20}, "resource": "leases"}],
    22: [{"effect": {"type": "Delay", "seconds": 30}, "verb": "update", "resource": "leases", "name": "policyengine"}],
    23: [{"effect": {"type": "Fail", "code": 500}, "subresource": "binding", "skip": 2}],
    25: [{"effect": {"type": "Withhold"}, "event": "DELETED", "resource": "pods"}],
    26: [{"effect": {"type": "Meanwhile", "requests": [{**DELETED, "method": "PATCH", "body": {}}]}}],
    29: [{"effect": {"type": "Meanwhile", "requests": [DELETED]}, "verb": "patch", "subresource": "status"}],
}
ELSEWHERE = {
    21: "PUT /policyengine/clock",
    24: "two gangs: pods alone say it",
    27: "a policy: ConfigMaps alone say it",
    28: "the extender is another server",
    30: "a comparison within the scheduler",
}


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


def test_every_row_is_said_or_needs_nothing_of_the_server() -> None:
    text = shared("faults.md").read_text(encoding="utf-8")
    rows = {int(line.split("|")[1]) for line in text.splitlines() if line.startswith("|") and line[2].isdigit()}
    assert rows == SAID.keys() | ELSEWHERE.keys() == set(range(1, 31))


@pytest.mark.parametrize("row", SAID)
async def test_a_row_is_taken_shown_and_lifted(row: int) -> None:
    server = Api()
    for number, rule in enumerate(SAID[row], start=1):
        status, shown = await server.ask("POST", FAULTS, rule)
        assert (status, shown["number"], shown["effect"]["type"]) == (201, number, rule["effect"]["type"])
    assert len((await server.ask("GET", FAULTS))[1]["faults"]) == len(SAID[row])
    assert (await server.ask("DELETE", f"{FAULTS}/1"))[0] == 200
    assert (await server.ask("DELETE", FAULTS))[0] == 200
    assert not server.api.faults.rules


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
