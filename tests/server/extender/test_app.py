"""The extender over real HTTP, as kube-scheduler and an operator meet it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import BytesPayload

from policyengine.clock import SystemClock
from policyengine.policy_compiler import compile_policy
from policyengine.server.extender.app import CannotServe, serve
from policyengine.server.extender.known_cluster import PAUSE, STEP, ExtenderCluster
from policyengine.server.listening import CannotListen
from tests.server.extender.recorded import POLICY, serving
from tests.server.extender.test_verbs import ROOM, node, pod

OTHER = 'policy "other" { filter "none" { require node.name == "" else "nobody" } }'


@asynccontextmanager
async def served(*texts: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(*texts) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        yield session


REQUEST = {"Pod": pod("p"), "Nodes": {"items": [node("a"), node("b")]}}


async def asked(session: aiohttp.ClientSession, path: str, body: Any = REQUEST) -> tuple[int, Any]:
    async with session.post(path, json=body) as response:
        return response.status, await response.json()


async def test_a_lone_policy_answers_to_any_prefix() -> None:
    async with served(POLICY) as session:
        for path in ("/filter", "/x/filter", "/some/where/else/filter"):
            _, answer = await asked(session, path)
            assert [one["metadata"]["name"] for one in answer["Nodes"]["items"]] == ["a", "b"]


async def test_of_several_policies_the_prefix_names_one() -> None:
    async with served(POLICY, OTHER) as session:
        assert len((await asked(session, "/calm/filter"))[1]["Nodes"]["items"]) == 2
        _, answer = await asked(session, "/v1/other/filter")
        assert answer["Nodes"]["items"] == []
        assert answer["FailedAndUnresolvableNodes"] == {"a": "none: nobody", "b": "none: nobody"}
        status, answer = await asked(session, "/nobody/filter")
        assert (status, answer["Error"]) == (200, "no policy is called `nobody`; there are: calm, other")
        assert (await asked(session, "/nobody/prioritize"))[0] == 404


async def test_who_asked_an_older_extender_asks_on() -> None:
    """The paths of kube-safe-scheduler, and of a plain extender of its time."""
    pigeon = 'policy "pigeon" { base none score "s" weight 1 = 70 }'
    async with served(POLICY, OTHER, pigeon) as session:
        for path in ("/scheduler/predicates/other", "/predicates/other", "/other/predicates", "/x/other/filter"):
            assert (await asked(session, path))[1]["FailedAndUnresolvableNodes"].keys() == {"a", "b"}, path
        for path in ("/scheduler/priorities/pigeon-holing", "/priorities/pigeon", "/pigeon/priorities"):
            assert (await asked(session, path))[1] == [{"Host": "a", "Score": 7}, {"Host": "b", "Score": 7}], path
    async with served(POLICY) as session:
        for path in ("/predicates", "/scheduler/predicates/safe-overload"):
            assert len((await asked(session, path))[1]["Nodes"]["items"]) == 2, path
        _, answer = await asked(session, "/preemption", {"Pod": pod("p")})
        assert answer == {"NodeNameToMetaVictims": {}}
        assert "a binding needs" in (await asked(session, "/scheduler/bind", {}))[1]["Error"]


async def test_a_cpu_profile_tells_what_the_extender_does() -> None:
    async with served(POLICY) as session:
        async with session.get("/debug/pprof/profile?seconds=0") as response:
            assert response.status == 400
        async with session.get("/debug/pprof/profile?seconds=1") as response:
            assert response.status == 200


async def test_health_version_and_metrics_are_there_and_what_is_no_verb_is_not_found() -> None:
    async with served(POLICY) as session:
        status, answer = await asked(session, '/calm/"evict')
        assert status == 404 and "no verb" in answer["Error"]
        async with session.get("/healthz") as response:
            assert (response.status, await response.text()) == (200, "ok")
        async with session.get("/readyz") as response:
            assert response.status == 200
        async with session.get("/version") as response:
            assert (await response.json())["policies"] == ["calm"]
        await (await session.post("/calm/filter", json=REQUEST)).read()
        await (await session.post("/calm/filter", data=b"{")).read()
        async with session.get("/metrics") as response:
            text = await response.text()
    assert 'policyengine_extender_requests_total{policy="calm",result="ok",verb="filter"} 1.0' in text
    assert 'policyengine_extender_requests_total{policy="calm",result="error",verb="filter"} 1.0' in text
    assert 'policyengine_policy_info{hash="' in text


async def test_a_body_over_the_limit_is_refused_in_the_protocols_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyengine.server.extender.app.MAX_BODY", 1000)
    async with served(POLICY) as session:
        async with session.post("/calm/filter", data=b" " * 5000) as response:
            assert (response.status, (await response.json())["Error"]) == (200, "the body is longer than 1000 bytes")
        async with session.post("/calm/prioritize", data=b" " * 5000) as response:
            assert response.status == 413


async def test_bodies_in_hand_are_bounded_together_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policyengine.server.extender.app.MAX_BODIES", 4000)
    whole = json.dumps(REQUEST).encode().ljust(3000)
    go_on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield whole[:2000]
        await go_on.wait()
        yield whole[2000:]

    async with served(POLICY) as session:
        first = asyncio.create_task(session.post("/calm/filter", data=slow()))
        refusal = {"Error": ""}
        while not refusal["Error"]:  # until the first is in hand
            async with session.post("/calm/prioritize", data=whole) as response:
                assert response.status in (200, 503)
                refusal = await response.json() if response.status == 503 else refusal
        assert "take 4000 bytes together; ask again" in refusal["Error"]
        go_on.set()
        async with await first as response:
            assert (await response.json())["Error"] == ""
        async with session.post("/calm/filter", data=whole) as response:
            assert (await response.json())["Error"] == ""


def many(one: str, size: int) -> str:
    return ",".join([one] * (size // (len(one) + 1)))


def hostile(what: str) -> bytes:
    """A body that is small for what it would take: 12 MiB."""
    size, pod, items = 12 << 20, '{"metadata":{"name":"p"}}', '{"metadata":{"name":"n"}}'
    if what == "items without a name":
        items = many("{}", size)
    elif what == "nodes":
        items = many('{"metadata":{"name":"n"}}', size)
    elif what == "containers":
        pod = '{"metadata":{"name":"p"},"spec":{"containers":[' + many('{"name":"a"}', size) + "]}}"
    elif what == "labels":
        items = '{"metadata":{"name":"n","labels":{' + many('"a":""', size) + "}}}"
    return f'{{"Pod":{pod},"Nodes":{{"items":[{items}]}}}}'.encode()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("items without a name", "more than 3000000 members"),
        ("nodes", "483958 nodes; 50000 are answered at most"),
        ("containers", "the API server takes none over 3145728"),
        ("labels", "the API server takes none over 3145728"),
    ],
)
async def test_what_would_take_too_much_is_refused_before_it_is_decoded(what: str, said: str) -> None:
    async with served(POLICY) as session, session.post("/calm/filter", data=BytesPayload(hostile(what))) as response:
        assert said in (await response.json())["Error"]


async def test_others_have_their_turn_between_the_nodes_of_a_large_request() -> None:
    sent = [msgspec.Raw(json.dumps(node(f"n{number}")).encode()) for number in range(1000)]
    cluster, turns = ExtenderCluster(), 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    assert len(await cluster.take(sent)) == 1000
    beside.cancel()
    assert turns >= 1000 * STEP // PAUSE


OF_TEAMS = 'policy "p" { filter "own" { require pod.namespaceLabels[?"zone"].hasValue() } }'


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (ROOM, r"`spare`, `pack` read what stands on the nodes.*--kubeconfig"),
        (OF_TEAMS, r"`p` reads labels or annotations of the pods' namespaces.*--kubeconfig"),
    ],
)
async def test_a_rule_that_needs_the_watch_does_not_start_without(policy: str, why: str) -> None:
    with pytest.raises(CannotServe, match=why):
        async with served(policy):
            pass


async def test_a_port_in_use_is_told_in_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"cannot listen on `127.0.0.1:{port}`: .*in use; choose another"):
            await serve([compile_policy(POLICY)], "127.0.0.1", port, SystemClock(), asyncio.Event())
