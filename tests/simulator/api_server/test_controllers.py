from typing import Any

from policyengine.simulator.api_server.controllers import Controllers
from tests.simulator.api_server.server_bench import PODS, Bench, binding, pod

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
STRATEGIC = "application/strategic-merge-patch+json"


async def running(bench: Bench, name: str) -> None:
    await bench.create(PODS, pod(name, labels={"app": "web"}))
    await bench.create(f"{PODS}/{name}/binding", binding(name, "n1"))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await bench.ask("PATCH", f"{PODS}/{name}/status", {"status": status}, content=STRATEGIC)


async def evict(bench: Bench, name: str) -> Any:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return await bench.ask("POST", f"{PODS}/{name}/eviction", body)


async def test_a_budget_lets_go_as_many_as_it_can_spare() -> None:
    bench = Bench()
    controllers = Controllers(bench.api)
    for name in ("a", "b"):
        await running(bench, name)
    selector = {"matchLabels": {"app": "web"}}
    await bench.create(BUDGETS, {"metadata": {"name": "pdb"}, "spec": {"minAvailable": 1, "selector": selector}})
    unseen = await evict(bench, "a")
    assert (unseen.status, unseen.headers["Retry-After"]) == (429, "10")
    controllers.settle()
    assert (await evict(bench, "a")).status == 201
    refused = await evict(bench, "b")
    assert refused.status == 429
    cause = refused.body["details"]["causes"][0]["message"]
    controllers.settle()
    refused = await evict(bench, "b")
    assert (
        refused.body["details"]["causes"][0]["message"]
        == "The disruption budget pdb needs 1 healthy pods and has 1 currently"
    )
    assert cause.startswith("The disruption budget pdb")


async def test_an_evicted_pod_carries_the_reason() -> None:
    bench = Bench()
    await running(bench, "a")
    assert (await evict(bench, "a")).status == 201
    held = (await bench.ask("GET", f"{PODS}/a")).body
    target = next(c for c in held["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert target["reason"] == "EvictionByEvictionAPI"
    assert held["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_a_deleted_namespace_empties_itself_and_goes() -> None:
    bench = Bench()
    await bench.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    await bench.create("/api/v1/namespaces/team/configmaps", {"metadata": {"name": "m"}})
    await bench.create("/api/v1/namespaces/team/pods", pod("p"))
    going = await bench.ask("DELETE", "/api/v1/namespaces/team")
    assert going.body["status"]["phase"] == "Terminating"
    late = await bench.ask("POST", "/api/v1/namespaces/team/pods", pod("q"))
    assert (late.status, late.body["reason"]) == (403, "Forbidden")
    Controllers(bench.api).settle()
    assert (await bench.ask("GET", "/api/v1/namespaces/team")).status == 404
    assert (await bench.ask("GET", "/api/v1/pods")).body["items"] == []
