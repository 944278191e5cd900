import json
from typing import Any

from tests.simulator.api_server.server_bench import NODES, PODS, Bench, binding, node, pod

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/default/configmaps"


async def test_every_write_is_in_the_log_with_what_was_there_before() -> None:
    bench = Bench()
    await bench.create(NODES, node("n1"))
    await bench.create(PODS, pod("p"))
    await bench.ask("POST", f"{PODS}/p/binding", binding("p", "n1"), user_agent="scheduler/1")
    await bench.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    timeline = [write for write in bench.api.writes if (write.kind, write.key) == ("Pod", "default/p")]
    seen = [(w.verb, w.subresource) for w in timeline]
    assert seen == [("create", ""), ("bind", "binding"), ("delete", ""), ("delete", "")]
    bind = timeline[1]
    assert bind.user_agent == "scheduler/1"
    assert bind.before is not None and bind.after is not None
    assert "nodeName" not in bind.before["spec"] and bind.after["spec"]["nodeName"] == "n1"  # type: ignore[operator,index,call-overload]
    versions = [w.resource_version for w in bench.api.writes]
    assert versions == sorted(set(versions))


async def test_an_update_that_changes_nothing_keeps_the_resource_version() -> None:
    bench = Bench()
    made = await bench.create(MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})
    watch = await bench.watch(MAPS, resourceVersion=made["metadata"]["resourceVersion"])
    same = await bench.ask("PUT", f"{MAPS}/m", made)
    patched = await bench.ask("PATCH", f"{MAPS}/m", {"data": {"a": "b"}}, content=MERGE)
    assert same.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert patched.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    await bench.create(MAPS, {"metadata": {"name": "n"}})
    assert await watch.names(1) == [("ADDED", "n")]


async def test_status_is_written_only_through_status() -> None:
    bench = Bench()
    await bench.create(PODS, pod("p"))
    plain = await bench.ask("PATCH", f"{PODS}/p", {"status": {"phase": "Failed"}}, content=MERGE)
    assert plain.body["status"]["phase"] == "Pending"
    body = {"status": {"phase": "Failed"}, "spec": {"schedulerName": "other"}}
    through = await bench.ask("PATCH", f"{PODS}/p/status", body, content=MERGE)
    assert through.body["status"]["phase"] == "Failed"
    assert through.body["spec"]["schedulerName"] == "default-scheduler"


async def test_a_finalizer_holds_an_object_until_it_is_removed() -> None:
    bench = Bench()
    await bench.create(MAPS, {"metadata": {"name": "m", "finalizers": ["example.com/hold"]}})
    held = await bench.ask("DELETE", f"{MAPS}/m")
    assert held.body["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert (await bench.ask("GET", f"{MAPS}/m")).status == 200
    await bench.ask("PATCH", f"{MAPS}/m", {"metadata": {"finalizers": None}}, content=MERGE)
    assert (await bench.ask("GET", f"{MAPS}/m")).status == 404


async def test_strategic_merge_merges_lists_by_key_and_obeys_directives() -> None:
    bench = Bench()
    await bench.create(PODS, pod("p"))

    async def patch(conditions: Any, **more: Any) -> list[str]:
        body = {"status": {"conditions": conditions, **more}}
        answer = await bench.ask("PATCH", f"{PODS}/p/status", body, content=STRATEGIC)
        assert answer.status == 200, answer.body
        return [c["type"] for c in answer.body["status"].get("conditions", [])]

    assert await patch([{"type": "A", "status": "True"}]) == ["A"]
    assert await patch([{"type": "B", "status": "True"}]) == ["B", "A"]
    order = {"$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}]}
    assert await patch([{"type": "A", "status": "False"}], **order) == ["A", "B"]
    assert await patch([{"type": "B", "$patch": "delete"}]) == ["A"]
    assert await patch([{"$patch": "replace"}, {"type": "C", "status": "True"}]) == ["C"]


async def test_apply_prunes_what_its_manager_gave_up_and_keeps_what_others_own() -> None:
    bench = Bench()

    async def apply(manager: str, data: dict[str, str], force: str = "false") -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
        return await bench.ask(
            "PATCH", f"{MAPS}/m", json.dumps(body).encode(), content=APPLY, fieldManager=manager, force=force
        )

    assert (await apply("one", {"a": "1", "b": "2"})).status == 201
    assert (await apply("two", {"b": "2", "c": "3"})).body["data"] == {"a": "1", "b": "2", "c": "3"}
    assert (await apply("one", {})).body["data"] == {"b": "2", "c": "3"}
    conflict = await apply("one", {"c": "9"})
    assert conflict.status == 409
    assert conflict.body["message"] == 'Apply failed with 1 conflict: conflict with "two": .data.c'
    forced = await apply("one", {"c": "9"}, force="true")
    assert forced.body["data"] == {"b": "2", "c": "9"}
    owners = {m["manager"]: m["fieldsV1"]["f:data"] for m in forced.body["metadata"]["managedFields"]}
    assert owners == {"one": {"f:c": {}}, "two": {"f:b": {}}}


async def test_a_body_nested_beyond_any_stack_is_refused() -> None:
    assert (await Bench().ask("POST", PODS, b"[" * 100_000)).status == 400


async def test_a_collection_is_deleted_part_by_part_where_a_limit_says_so() -> None:
    bench = Bench()
    for name in ("a", "b", "c"):
        await bench.create(PODS, pod(name))
    first = (await bench.ask("DELETE", PODS, limit="2")).body
    assert [one["metadata"]["name"] for one in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    rest = (await bench.ask("DELETE", PODS, limit="2")).body
    assert [one["metadata"]["name"] for one in rest["items"]] == ["c"]
    assert "continue" not in rest["metadata"]
