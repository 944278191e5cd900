import asyncio

import pytest

from policyengine.kube.transport import ConnectionFailed
from policyengine.simulator.api_server import MemoryTransport
from policyengine.simulator.api_server import faults as f
from policyengine.simulator.api_server.statuses import too_many_requests
from tests.simulator.api_server.server_bench import NODES, PODS, Bench, node, pod


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


async def test_the_same_seed_draws_the_same_faults() -> None:
    def draws() -> list[bool]:
        bench = Bench()
        rule = bench.api.faults.add(f.Cut(), probability=0.5, times=None)
        return [bench.api.faults._acts(rule) for _ in range(20)]

    assert draws() == draws()
