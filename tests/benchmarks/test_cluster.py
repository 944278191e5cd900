"""Between two runs a server of one's own keeps the nodes of the same workload, and nothing else."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.cluster import MARK, Cluster, NotOurs, Watcher, call
from benchmarks.scheduler_perf import WORKLOADS
from policyengine.clock import SystemClock
from policyengine.kube.http.client import Client
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport

TINY = WORKLOADS["peer-basic"].sized(6, 9)


@pytest.fixture
def transport() -> MemoryTransport:
    return MemoryTransport(ApiServer(SystemClock()))


async def there(transport: MemoryTransport, path: str) -> dict[str, dict[str, Any]]:
    items = json.loads(await call(transport, "GET", path))["items"]
    return {item["metadata"]["name"]: item["metadata"] for item in items}


async def pods(transport: MemoryTransport) -> list[str]:
    return sorted(await there(transport, "/api/v1/namespaces/bench/pods"))


async def test_the_next_run_of_the_workload_finds_its_nodes_and_no_pod(transport: MemoryTransport) -> None:
    await Cluster(transport).fill(TINY, "s")
    before = await there(transport, "/api/v1/nodes")
    again = Cluster(transport)
    await again.clear(TINY)
    assert await pods(transport) == []
    await again.fill(TINY, "t")
    assert len(await pods(transport)) == 9
    assert {name: one["uid"] for name, one in (await there(transport, "/api/v1/nodes")).items()} == {
        name: one["uid"] for name, one in before.items()
    }


@pytest.mark.parametrize("other", [WORKLOADS["peer-basic"].sized(7, 9), WORKLOADS["SchedulingBasic"].sized(6, 9)])
async def test_the_nodes_of_another_workload_go(transport: MemoryTransport, other: Any) -> None:
    await Cluster(transport).fill(other, "s")
    cluster = Cluster(transport)
    await cluster.clear(TINY)
    assert await there(transport, "/api/v1/nodes") == {}
    await cluster.fill(TINY, "s")
    nodes = await there(transport, "/api/v1/nodes")
    assert len(nodes) == 6
    assert nodes["node-000003"]["labels"]["topology.kubernetes.io/zone"] == "zone3"


async def test_churn_is_marked_and_unmade_and_what_it_left_makes_all_nodes_go(
    transport: MemoryTransport,
) -> None:
    cluster = Cluster(transport)
    await cluster.fill(TINY, "s")
    churn = WORKLOADS["MixedChurn"].churn
    assert churn is not None
    items = [make(0) for make in churn.objects]
    await cluster.recreate(items)
    assert (await there(transport, "/api/v1/nodes"))["churned-000000"]["annotations"] == {MARK: "true"}
    await cluster.remove(items)
    assert "churned-000000" not in await there(transport, "/api/v1/nodes")
    assert await there(transport, "/api/v1/namespaces/bench/services") == {}
    await cluster.recreate(items)
    await cluster.clear(TINY)
    assert await there(transport, "/api/v1/nodes") == {}


async def test_a_cluster_of_others_is_left_alone(transport: MemoryTransport) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "precious"}}
    await call(transport, "POST", "/api/v1/nodes", json.dumps(node).encode())
    for give_up in (Cluster(transport).clear(TINY), Cluster(transport).empty()):
        with pytest.raises(NotOurs, match="`precious`"):
            await give_up
    assert list(await there(transport, "/api/v1/nodes")) == ["precious"]


async def test_pods_that_come_during_the_run_are_not_there_before(transport: MemoryTransport) -> None:
    cluster = Cluster(transport)
    during = replace(WORKLOADS["SchedulingBasic"].sized(10, 4), during=True)
    await cluster.fill(during, "s")
    assert await pods(transport) == ["initial-000000", "initial-000001"]
    await cluster.fill_waiting(during, "s")
    assert len(await pods(transport)) == 6


async def test_each_measured_pod_is_seen_to_get_its_node_once_and_read_back(transport: MemoryTransport) -> None:
    cluster, client = Cluster(transport), Client(transport)
    await cluster.fill(WORKLOADS["SchedulingBasic"].sized(10, 4), "s")
    watcher = Watcher(client)
    watching = asyncio.create_task(watcher.run())
    await watcher.synced.wait()
    for name, node in (("pod-000002", "node-000005"), ("pod-000000", "node-000002")):
        await client.bind("bench", name, "", node, {})
    while len(watcher.times) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    watching.cancel()
    assert watcher.nodes == await cluster.placed() == {"pod-000002": "node-000005", "pod-000000": "node-000002"}
    assert watcher.times == sorted(watcher.times)


async def test_an_emptied_cluster_has_nothing_of_the_benchmark_s(transport: MemoryTransport) -> None:
    cluster = Cluster(transport)
    await cluster.fill(WORKLOADS["SchedulingBasic"].sized(10, 5), "s")
    assert await pods(transport) == ["initial-000000", "initial-000001", *(f"pod-{i:06d}" for i in range(5))]
    assert "bench-important" in await there(transport, "/apis/scheduling.k8s.io/v1/priorityclasses")
    await cluster.empty()
    for path in ("/api/v1/nodes", "/api/v1/namespaces/bench/pods", "/apis/scheduling.k8s.io/v1/priorityclasses"):
        assert not any(not name.startswith("system-") for name in await there(transport, path)), path
