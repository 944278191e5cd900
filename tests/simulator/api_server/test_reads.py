from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.api_server.server_bench import NODES, PODS, Bench, node, pod

MERGE = "application/merge-patch+json"


async def filled(number: int, **more: Any) -> Bench:
    bench = Bench(**more)
    for at in range(number):
        await bench.create(PODS, pod(f"p{at}", labels={"parity": str(at % 2)}))
    return bench


def names(body: Any) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


async def test_a_watch_resumes_from_any_version_in_the_window_and_no_older() -> None:
    bench = await filled(6, window=3)
    newest = bench.api.store.revision
    watch = await bench.watch(PODS, resourceVersion=newest - 3)
    assert await watch.names(3) == [("ADDED", "p3"), ("ADDED", "p4"), ("ADDED", "p5")]
    expired = await (await bench.watch(PODS, resourceVersion=newest - 4)).next()
    assert expired["type"] == "ERROR"
    assert (expired["object"]["code"], expired["object"]["reason"]) == (410, "Expired")


async def test_a_watch_of_one_namespace_hears_nothing_of_others() -> None:
    bench = Bench()
    watch = await bench.watch("/api/v1/namespaces/kube-system/pods", resourceVersion=bench.api.store.revision)
    await bench.create(PODS, pod("p"))
    await bench.create("/api/v1/namespaces/kube-system/pods", pod("q"))
    assert await watch.names(1) == [("ADDED", "q")]


async def test_bookmarks_come_by_themselves_and_a_timed_watch_ends() -> None:
    bench = Bench()
    start = bench.api.store.revision
    watch = await bench.watch(NODES, resourceVersion=start, allowWatchBookmarks="true", timeoutSeconds=90)
    await bench.create(PODS, pod("p"))
    await bench.clock.advance(61)
    mark = await watch.next()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"] == {"resourceVersion": str(bench.api.store.revision)}
    await bench.clock.advance(60)
    await watch.next()
    assert await watch.ended()


async def test_a_table_counts_containers_and_says_the_age() -> None:
    bench = await filled(1)
    await bench.clock.advance(125)
    table = (await bench.ask("GET", PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json")).body
    assert table["rows"][0]["cells"] == ["p0", "0/1", "Pending", "0", "2m5s", *["<none>"] * 4]


CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
JOB = {"completions": 3, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
DISK = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
DEFAULT = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
# Where it is created, as what -> its first cells in a table.
CELLS: dict[str, tuple[Any, list[str]]] = {
    "/apis/batch/v1/namespaces/default/jobs": ({"spec": JOB}, ["x", "Running", "0/3", ""]),
    "/api/v1/persistentvolumes": (
        {"spec": DISK | {"claimRef": {"namespace": "ns", "name": "c"}}},
        ["x", "1Gi", "RWO", "Retain", "Pending", "ns/c"],
    ),
    CLASSES: ({"provisioner": "e.com/d", "metadata": {"name": "x", **DEFAULT}}, ["x (default)", "e.com/d", "Delete"]),
}


@pytest.mark.parametrize("path", CELLS)
async def test_tables_say_what_kubectl_prints_of_a_kind(path: str) -> None:
    bench, (body, cells) = Bench(), CELLS[path]
    await bench.create(path, {"metadata": {"name": "x"}, **body})
    table = (await bench.ask("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
    assert table["rows"][0]["cells"][: len(cells)] == cells


steps = st.lists(st.tuples(st.sampled_from(["create", "label", "delete"]), st.integers(0, 3)), max_size=25)


@settings(max_examples=30)
@given(steps)
async def test_a_watch_from_the_start_rebuilds_exactly_what_a_list_shows(plan: list[tuple[str, int]]) -> None:
    bench = Bench()
    watch = await bench.watch(NODES, resourceVersion=bench.api.store.revision)
    for at, (verb, number) in enumerate(plan):
        name = f"n{number}"
        if verb == "create":
            await bench.ask("POST", NODES, node(name))
        elif verb == "delete":
            await bench.ask("DELETE", f"{NODES}/{name}")
        else:
            await bench.ask("PATCH", f"{NODES}/{name}", {"metadata": {"labels": {"at": str(at)}}}, content=MERGE)
    await bench.create(NODES, node("last"))
    rebuilt: dict[str, Any] = {}
    while True:
        event = await watch.next()
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            del rebuilt[name]
        else:
            rebuilt[name] = event["object"]["metadata"]
        if name == "last":
            break
    listed = (await bench.ask("GET", NODES)).body["items"]
    assert rebuilt == {item["metadata"]["name"]: item["metadata"] for item in listed}
