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
    bench, defined = Bench(), definition()
    column = {"name": "Least", "type": "integer", "jsonPath": ".spec.minMember", "priority": 0}
    defined["spec"]["versions"][0]["additionalPrinterColumns"] = [column]
    await bench.create(DEFINITIONS, defined)
    return bench


async def test_values_are_checked_by_the_schema_unknown_fields_pruned_and_the_kind_is_described() -> None:
    bench = await served()
    bad = await bench.ask("POST", GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 0}})
    assert (bad.status, bad.body["details"]["causes"][0]["message"]) == (
        422,
        "Invalid value: 0: spec.minMember in body should be greater than or equal to 1",
    )
    made = await bench.create(GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2, "bogus": 1}})
    assert made["spec"] == {"minMember": 2}
    table = (await bench.ask("GET", GROUPS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Least"]
    assert table["rows"][0]["cells"] == ["g", 2]
    described = (await bench.ask("GET", "/openapi/v3/apis/scheduling.x-k8s.io/v1alpha1")).body
    assert "io.x-k8s.scheduling.v1alpha1.PodGroup" in described["components"]["schemas"]


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
