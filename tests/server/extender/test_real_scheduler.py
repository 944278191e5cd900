"""The real kube-scheduler asks our extender on a real API server, and its pods land where the policy says."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp.test_utils import unused_port

from policyengine.server.certificate import CertificateFiles
from tests.server.extender.real_scheduler import World, asked, extender, kube_scheduler, world
from tests.simulator.api_server.keys import Keys

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALM = """policy "calm" {
  scheduler "default-scheduler"
  let congestion = toInt(node.annotations[?"congestion-factor"]).orValue(0)
  filter "quiet" { require congestion < 80 else "congestion {congestion}" }
  score "calm" weight 100 = clamp(100 - congestion, 0, 100)
}"""
ROOM = """policy "room" {
  scheduler "default-scheduler"
  filter "spare" { require node.free.memory - pod.requests.memory >= 2Gi else "has {node.free.memory}" }
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with world(tmp_path_factory.mktemp("real")) as at:
        yield at


@pytest_asyncio.fixture(loop_scope="module")
async def at(servers: World) -> AsyncIterator[World]:
    yield servers
    await servers.empty()


@pytest.mark.parametrize("names_only", [True, False])
async def test_pods_land_where_the_policy_says_and_are_bound_by_it(at: World, names_only: bool) -> None:
    await at.add_node("busy", congestion_factor="90")
    await at.add_node("some", congestion_factor="50")
    await at.add_node("still", congestion_factor="10")
    async with extender(at, CALM) as url:
        async with kube_scheduler(at, CALM, url, nodeCacheCapable=names_only, bindVerb="bind"):
            for number in range(3):
                await at.add_pod(f"small-{number}", cpu="300m")
            assert {await at.node_of(f"small-{number}") for number in range(3)} == {"still"}
            await at.add_pod("second", cpu="300m")
            assert await at.node_of("second") == "some"
            await at.add_pod("large", cpu="900m")
            assert await at.node_of("large", seconds=3.0) == ""
        assert {"filter", "prioritize", "bind"} <= await asked(url)


@pytest.mark.parametrize("names_only", [True, False])
async def test_a_victim_is_only_taken_where_the_policy_lets_the_pod_in(at: World, names_only: bool) -> None:
    # By priority alone kube-scheduler evicts `low` on `small`, where the policy finds too little memory.
    await at.add_node("small", memory="4Gi")
    await at.add_node("large", memory="8Gi")
    await at.add_pod("low", cpu="1", memory="1Gi", on="small", priority=10)
    await at.add_pod("mid", cpu="1", memory="1Gi", on="large", priority=20)
    async with extender(at, ROOM) as url:
        async with kube_scheduler(at, ROOM, url, nodeCacheCapable=names_only):
            await at.add_pod("high", cpu="1", memory="3Gi", priority=1000)
            assert await at.node_of("high") == "large"
        assert "preempt" in await asked(url)
    assert await at.node_of("low") == "small"


async def test_a_kube_scheduler_that_starts_first_goes_on_alone_and_asks_once_the_extender_is_there(at: World) -> None:
    port = unused_port()
    await at.add_node("busy", cpu="8", congestion_factor="90")
    await at.add_node("still", cpu="1", congestion_factor="10")
    async with kube_scheduler(at, CALM, f"http://127.0.0.1:{port}"):
        await at.add_pod("before", cpu="900m")
        assert await at.node_of("before") == "busy"
        async with extender(at, CALM, port) as url:
            await at.add_pod("after", cpu="900m")
            assert await at.node_of("after") == "still"
            assert "filter" in await asked(url)


async def test_an_extender_that_starts_first_waits_for_nobody(at: World) -> None:
    await at.add_node("busy", cpu="8", congestion_factor="90")
    await at.add_node("still", cpu="1", congestion_factor="10")
    async with extender(at, CALM) as url:
        assert await asked(url) == set()
        await at.add_pod("early", cpu="900m")
        await asyncio.sleep(0.2)
        async with kube_scheduler(at, CALM, url):
            assert await at.node_of("early") == "still"


async def test_its_client_certificate_lets_it_in_and_that_of_another_name_does_not(at: World, tmp_path: Path) -> None:
    await at.add_node("busy", cpu="8", congestion_factor="90")
    await at.add_node("still", cpu="1", congestion_factor="10")
    keys = Keys(tmp_path)
    tls = CertificateFiles(*keys.sign("extender", "/CN=127.0.0.1"), tmp_path / "ca.crt")
    async with extender(at, CALM, tls=tls, client_names=("system:kube-scheduler",)) as url:
        for name, node in (("system:node:still", "busy"), ("system:kube-scheduler", "still")):
            certificate, key = keys.sign(name.replace(":", "-"), f"/O=system/CN={name}")
            shown = {"insecure": True, "certFile": str(certificate), "keyFile": str(key)}
            async with kube_scheduler(at, CALM, url, enableHTTPS=True, tlsConfig=shown):
                await at.add_pod(f"for-{node}", cpu="900m")
                assert await at.node_of(f"for-{node}") == node
