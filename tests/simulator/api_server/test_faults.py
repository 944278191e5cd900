import asyncio
import json

import pytest

from policyengine.kube.http.client import ConnectionFailed
from policyengine.simulator.api_server import MemoryTransport, Request
from policyengine.simulator.api_server.statuses import too_many_requests
from tests.faulty_server import effects as f
from tests.simulator.api_server.server_bench import NODES, PODS, Bench, binding, node, pod


async def test_an_error_befalls_only_the_verb_kind_client_and_times_it_is_said_of() -> None:
    bench = Bench()
    slow_down = f.Fail(too_many_requests("slow down", 3))
    bench.api.faults.add(slow_down, verb="create", resource="pods", client="scheduler", times=1)
    assert (await bench.ask("POST", NODES, node("n"), user_agent="scheduler/1")).status == 201
    assert (await bench.ask("POST", PODS, pod("a"), user_agent="kubectl/1")).status == 201
    hit = await bench.ask("POST", PODS, pod("b"), user_agent="scheduler/1")
    assert (hit.status, hit.headers["Retry-After"]) == (429, "3")
    assert (await bench.ask("POST", PODS, pod("b"), user_agent="scheduler/1")).status == 201


@pytest.mark.parametrize(("after", "there"), [(False, 404), (True, 200)])
async def test_a_connection_breaks_before_or_after_the_effect(after: bool, there: int) -> None:
    bench = Bench()
    bench.api.faults.add(f.Drop(after=after), verb="create", resource="nodes")
    client = MemoryTransport(bench.api)
    headers = {"Content-Type": "application/json"}
    with pytest.raises(ConnectionFailed) as failed:
        await client.request("POST", NODES, body=b'{"metadata":{"name":"n"}}', headers=headers)
    assert failed.value.sent
    assert (await bench.ask("GET", f"{NODES}/n")).status == there


async def test_a_delayed_answer_runs_into_the_clients_timeout_on_virtual_time() -> None:
    bench = Bench()
    bench.api.faults.add(f.Delay(10), verb="list")
    asking = asyncio.ensure_future(MemoryTransport(bench.api).request("GET", NODES, timeout=5))
    await bench.clock.advance(6)
    with pytest.raises(ConnectionFailed, match="no answer within 5 s"):
        await asking


async def events(bench: Bench, effect: f.LineEffect, event: str = "") -> list[str]:
    """What a watch of four nodes says when the second line is hit; raw lines."""
    bench.api.faults.add(effect, resource="nodes", event=event, skip=1)
    response = await bench.raw("GET", NODES, watch="1", resourceVersion=bench.api.store.revision)
    assert not isinstance(response.body, bytes)
    for at in range(4):
        await bench.create(NODES, node(f"n{at}"))
    seen: list[str] = []
    try:
        while True:
            line = await asyncio.wait_for(anext(response.body), 0.05)
            seen.append(line.decode())
    except (StopAsyncIteration, TimeoutError):
        return seen


def order(lines: list[str]) -> list[str]:
    return [line.partition('"name":"')[2][:2] for line in lines]


async def test_watch_lines_are_duplicated_reordered_and_withheld() -> None:
    assert order(await events(Bench(), f.Duplicate())) == ["n0", "n1", "n1", "n2", "n3"]
    assert order(await events(Bench(), f.Reorder())) == ["n0", "n2", "n1", "n3"]
    assert order(await events(Bench(), f.Withhold())) == ["n0", "n2", "n3"]


async def test_a_stream_is_cut_garbled_or_expired() -> None:
    assert order(await events(Bench(), f.Cut())) == ["n0"]
    garbled = await events(Bench(), f.Garble())
    assert len(garbled) == 2 and not garbled[1].endswith("\n")
    expired = await events(Bench(), f.Expire())
    assert '"code":410' in expired[-1] and len(expired) == 2


async def test_a_stale_read_shows_the_past_and_says_its_version() -> None:
    bench = Bench()
    for name in ("n0", "n1", "n2"):
        await bench.create(NODES, node(name))
    here = bench.api.store.revision
    bench.api.faults.add(f.Stale(2), verb="list", resource="nodes")
    stale = (await bench.ask("GET", NODES)).body
    assert [item["metadata"]["name"] for item in stale["items"]] == ["n0"]
    assert stale["metadata"]["resourceVersion"] == str(here - 2)
    assert len((await bench.ask("GET", NODES)).body["items"]) == 3
    bench.api.faults.add(f.Stale(1), verb="get", name="n2")
    assert (await bench.ask("GET", f"{NODES}/n2")).status == 404
    watch = await bench.watch(NODES, resourceVersion=here - 2)
    assert await watch.names(2) == [("ADDED", "n1"), ("ADDED", "n2")]


async def test_the_servers_clock_is_off_and_its_timers_are_not() -> None:
    bench = Bench()
    bench.api.clock.offset = 3600
    made = await bench.create(NODES, node("n"))
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T01:00:00Z"
    watch = await bench.watch(NODES, resourceVersion=bench.api.store.revision, timeoutSeconds=5)
    await bench.clock.advance(6)
    assert await watch.ended()


async def test_others_act_right_before_and_right_after() -> None:
    bench = Bench()
    await bench.create(PODS, pod("p"))
    theirs = Request("POST", f"{PODS}/p/binding", {}, {}, json.dumps(binding("p", "theirs")).encode())
    bench.api.faults.add(f.Meanwhile((theirs,)), verb="create", resource="pods", subresource="binding")
    ours = await bench.ask("POST", f"{PODS}/p/binding", binding("p", "ours"))
    assert ours.status == 409 and "already assigned" in ours.body["message"]
    assert (await bench.ask("GET", f"{PODS}/p")).body["spec"]["nodeName"] == "theirs"
    bench.api.faults.add(f.Meanwhile((Request("DELETE", f"{PODS}/p"),), after=True), verb="get")
    assert (await bench.ask("GET", f"{PODS}/p")).status == 200
    gone = (await bench.ask("GET", f"{PODS}/p")).body
    assert gone["metadata"]["deletionTimestamp"]


async def test_an_overloaded_server_answers_as_priority_and_fairness_does() -> None:
    bench = Bench()
    bench.api.faults.add(f.Overload(2))
    refused = await bench.raw("GET", NODES)
    assert (refused.status, refused.headers["Retry-After"]) == (429, "2")
    assert refused.body == b"Too many requests, please try again later.\n"


async def test_half_an_answer_is_a_broken_connection() -> None:
    bench = Bench()
    bench.api.faults.add(f.Truncate(), verb="list")
    response = await MemoryTransport(bench.api).request("GET", NODES)
    with pytest.raises(ConnectionFailed):
        await response.read()


async def test_a_delete_and_a_create_arrive_as_one_update() -> None:
    bench = Bench()
    await bench.create(NODES, node("n"))
    bench.api.faults.add(f.Coalesce(), event="DELETED")
    watch = await bench.watch(NODES, resourceVersion=bench.api.store.revision)
    await bench.ask("DELETE", f"{NODES}/n")
    again = await bench.create(NODES, node("n"))
    event = await watch.next()
    assert (event["type"], event["object"]["metadata"]["uid"]) == ("MODIFIED", again["metadata"]["uid"])


async def test_a_restart_breaks_watches_refuses_connections_and_forgets() -> None:
    bench = Bench()
    await bench.create(NODES, node("n"))
    before = bench.api.store.revision
    watch = await bench.watch(NODES, resourceVersion=before)
    bench.api.restart(5)
    assert await watch.ended()
    client = MemoryTransport(bench.api)
    with pytest.raises(ConnectionFailed) as refused:
        await client.request("GET", NODES)
    assert not refused.value.sent
    await bench.clock.advance(6)
    assert (await client.request("GET", NODES)).status == 200
    late = await (await bench.watch(NODES, resourceVersion=before - 1)).next()
    assert late["object"]["code"] == 410


async def test_a_rule_ends_with_its_time_and_means_only_its_user() -> None:
    bench = Bench()
    bench.api.faults.add(f.Fail(too_many_requests("no", 1)), times=None, seconds=10)
    assert (await bench.ask("GET", NODES)).status == 429
    await bench.clock.advance(11)
    assert (await bench.ask("GET", NODES)).status == 200
    bench.api.faults.add(f.Fail(too_many_requests("no", 1)), user="somebody else")
    assert (await bench.ask("GET", NODES)).status == 200


async def test_a_delay_longer_than_a_minute_is_the_servers_own_timeout() -> None:
    bench = Bench()
    bench.api.faults.add(f.Delay(100, after=True), verb="create")
    asking = asyncio.ensure_future(bench.raw("POST", NODES, node("n")))
    await bench.clock.advance(61)
    late = await asking
    assert late.status == 504 and b"did not complete within the allotted timeout" in late.body
    assert (await bench.ask("GET", f"{NODES}/n")).status == 200
