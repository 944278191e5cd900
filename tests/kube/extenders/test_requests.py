"""Pods are placed as extenders have it, and whatever an extender does, nothing is lost."""

import asyncio
import json
import socket
from typing import Any

from aiohttp import web

from tests.kube.extenders.extender_world import NODES, PODS, World, all_pass, fails, only, world

FILTER = {"filterVerb": "filter", "nodeCacheCapable": True}


async def test_each_extender_filters_what_the_one_before_let_through() -> None:
    def answer(verb: str, body: Any) -> Any:
        return only("node-1", "node-3")(verb, body) if verb == "one" else only("node-2", "node-3")(verb, body)

    async with world(answer, {**FILTER, "filterVerb": "one"}, {**FILTER, "filterVerb": "two"}) as at:
        await at.pod("p")
        assert await at.until_bound("p") == "node-3"
        assert [body["NodeNames"] for _, body in at.asked] == [list(NODES), ["node-1", "node-3"]]


async def test_a_slow_extender_keeps_nobody_else_waiting() -> None:
    async def slow() -> web.Response:
        await asyncio.sleep(30)
        return web.json_response({})

    managed = {**FILTER, "managedResources": [{"name": "x.io/gpu"}], "httpTimeout": "1s"}
    async with world(lambda verb, body: slow(), managed) as at:
        await at.pod("gpu", **{"x.io/gpu": "1"})
        await at.pod("plain")
        await at.until_bound("plain")
        assert at.scheduler.state.place((await at.get("gpu"))["metadata"]["uid"]) == "in flight"
        reason, message = await at.until_told("gpu")
        assert reason == "SchedulerError" and "did not answer within 1 s" in message


async def test_an_extender_that_fails_fails_the_attempt_unless_it_is_ignorable() -> None:
    async with world(fails, FILTER) as at:
        await at.pod("p")
        reason, message = await at.until_told("p")
        assert reason == "SchedulerError" and "answers with HTTP status 500" in message
        assert not await at.node_of("p")
    async with world(fails, {**FILTER, "ignorable": True}) as at:
        await at.pod("p")
        assert await at.until_bound("p") in NODES


async def test_neither_has_to_start_first() -> None:
    """Pods are placed without an ignorable extender that is not there yet, its own among them, and with it after."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with world(all_pass, {**FILTER, "urlPrefix": f"http://127.0.0.1:{port}/ext", "ignorable": True}) as at:
        await at.pod("extender-itself")
        assert await at.until_bound("extender-itself") in NODES
        application = web.Application()

        async def handle(request: web.Request) -> web.Response:
            return web.json_response(only("node-2")("filter", await request.json()))

        application.router.add_post("/ext/filter", handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            for number in range(4):
                await at.pod(f"p{number}")
            assert {await at.until_bound(f"p{number}") for number in range(4)} == {"node-2"}
        finally:
            await runner.cleanup()


async def test_scores_count_ten_times_their_weight_and_those_that_do_not_come_are_passed_over() -> None:
    def answer(verb: str, body: Any) -> Any:
        return [{"Host": "node-3", "Score": 10}] if verb == "score" else fails(verb, body)

    async with world(
        answer, *({"prioritizeVerb": verb, "weight": 100, "nodeCacheCapable": True} for verb in ("fail", "score"))
    ) as at:
        for number in range(5):
            await at.pod(f"p{number}")
        assert {await at.until_bound(f"p{number}") for number in range(5)} == {"node-3"}


async def test_an_extender_may_bind() -> None:
    async def bind(at: list[World], body: Any) -> web.Response:
        target = {"metadata": {"name": body["PodName"]}, "target": {"kind": "Node", "name": body["Node"]}}
        path = f"{PODS}/{body['PodName']}/binding"
        await at[0].outside.request("POST", path, body=json.dumps(target).encode())
        return web.json_response({"Error": ""})

    here: list[World] = []
    async with world(lambda verb, body: bind(here, body), {"bindVerb": "bind"}) as at:
        here.append(at)
        await at.pod("p")
        node_name = await at.until_bound("p")
        (sent,) = [body for verb, body in at.asked if verb == "bind"]
        assert sent == {
            "PodName": "p",
            "PodNamespace": "default",
            "PodUID": (await at.get("p"))["metadata"]["uid"],
            "Node": node_name,
        }
        assert [one.user_agent for one in at.api.writes if one.subresource == "binding"] == ["test"]
