import json
from typing import Any

from tests.shared_facts import shared
from tests.simulator.api_server.server_bench import Bench

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
MERGE = "application/merge-patch+json"


def definition() -> Any:
    calls = json.loads(shared("recorded/apiserver-1.36.json").read_text(encoding="utf-8"))
    return next(call["request"]["body"] for call in calls if call["name"] == "create crd podgroups")


async def served() -> Bench:
    bench = Bench()
    await bench.create(DEFINITIONS, definition())
    return bench


async def test_unknown_fields_are_pruned() -> None:
    bench = await served()
    made = await bench.create(GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2, "bogus": 1}})
    assert made["spec"] == {"minMember": 2}


async def test_status_is_a_subresource_and_generation_counts_wishes_only() -> None:
    bench = await served()
    await bench.create(GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2}, "status": {"phase": "x"}})
    status = await bench.ask("PATCH", f"{GROUPS}/g/status", {"status": {"phase": "Running"}}, content=MERGE)
    assert (status.body["status"], status.body["metadata"]["generation"]) == ({"phase": "Running"}, 1)
    wish = await bench.ask("PATCH", f"{GROUPS}/g", {"spec": {"minMember": 3}}, content=MERGE)
    assert (wish.body["status"], wish.body["metadata"]["generation"]) == ({"phase": "Running"}, 2)


async def test_a_definition_takes_its_objects_with_it() -> None:
    bench = await served()
    await bench.create(GROUPS, {"metadata": {"name": "g"}, "spec": {}})
    watch = await bench.watch(GROUPS, resourceVersion=bench.api.store.revision)
    await bench.ask("DELETE", f"{DEFINITIONS}/podgroups.scheduling.x-k8s.io")
    assert await watch.names(1) == [("DELETED", "g")]
    assert await watch.ended()
    assert (await bench.ask("GET", GROUPS)).status == 404
