"""What a client gets wrong in patches, applies and options, and paths that lead nowhere.

They go on where `bad_input` ends: with its namespace, its ConfigMap `held` and its pod `b`.
"""

from typing import Any

from tests.record.bad_input import APPLY, JSON_PATCH, MAPS, MERGE, PODS, STRATEGIC, config_map
from tests.record.session import Session


async def run(session: Session) -> None:
    """All of it."""
    await patches(session)
    await applies(session)
    await options(session)
    await paths(session)


async def patches(session: Session) -> None:
    """Patches that cannot be read or do not fit."""
    one = f"{MAPS}/held"
    operations: dict[str, Any] = {
        "an unknown operation": [{"op": "frob", "path": "/data"}],
        "no operation": [{"path": "/data/k"}],
        "a path that is not there": [{"op": "replace", "path": "/data/absent/x", "value": 1}],
        "remove what is not there": [{"op": "remove", "path": "/data/absent"}],
        "a test that fails": [{"op": "test", "path": "/data/k", "value": "w"}],
        "an object": {"op": "add"},
        "a path without a slash": [{"op": "add", "path": "data", "value": {}}],
        "the kind": [{"op": "replace", "path": "/kind", "value": "Pod"}],
        "the name": [{"op": "replace", "path": "/metadata/name", "value": "y"}],
    }
    for name, body in operations.items():
        await session.ask(f"JSON patch: {name}", "PATCH", one, body, content=JSON_PATCH)
    await session.ask("JSON patch: no JSON", "PATCH", one, b"[{", content=JSON_PATCH)
    for content, kind in ((MERGE, "merge"), (STRATEGIC, "strategic")):
        for name, raw in {
            "no JSON": b"{",
            "an array": b"[]",
            "a string": b'"x"',
            "nothing": b"",
            "null": b"null",
        }.items():
            await session.ask(f"{kind} patch: {name}", "PATCH", one, raw, content=content)
        await session.ask(f"{kind} patch: a wrong type", "PATCH", one, {"data": 5}, content=content)
        await session.ask(f"{kind} patch: another name", "PATCH", one, {"metadata": {"name": "y"}}, content=content)
        await session.ask(
            f"{kind} patch: another namespace", "PATCH", one, {"metadata": {"namespace": "y"}}, content=content
        )
        await session.ask(f"{kind} patch: of nothing there", "PATCH", f"{MAPS}/absent", {"data": {}}, content=content)
    await session.ask(
        "strategic patch: a list without its key",
        "PATCH",
        f"{PODS}/b",
        {"spec": {"containers": [{"image": "j"}]}},
        content=STRATEGIC,
    )
    await session.ask(
        "strategic patch: an unknown directive", "PATCH", f"{PODS}/b", {"spec": {"$patch": "frob"}}, content=STRATEGIC
    )


async def applies(session: Session) -> None:
    """Server-side applies that are refused."""
    one = f"{MAPS}/held"
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held}\n"
    await session.ask("apply: without a manager", "PATCH", one, good, content=APPLY)
    await session.ask("apply: a manager too long", "PATCH", f"{one}?fieldManager={'m' * 129}", good, content=APPLY)
    await session.ask(
        "apply: a manager that cannot be printed", "PATCH", f"{one}?fieldManager=a%07b", good, content=APPLY
    )
    for name, text in {
        "no YAML": "a: [",
        "nothing": "",
        "without a kind": "apiVersion: v1\nmetadata: {name: held}\n",
        "another kind": good.replace("ConfigMap", "Pod"),
        "another name": good.replace("held", "other"),
        "managed fields": good.replace("{name: held}", "{name: held, managedFields: [{manager: x}]}"),
        "a wrong type": good + "data: 5\n",
        "an unknown version": good.replace("v1", "v9"),
    }.items():
        await session.ask(f"apply: {name}", "PATCH", f"{one}?fieldManager=m", text, content=APPLY)
    await session.ask(
        "apply: fields with force false to another's",
        "PATCH",
        f"{one}?fieldManager=m",
        good + "data: {k: w}\n",
        content=APPLY,
    )
    containers = "containers: [{name: c, image: i}, {name: c, image: j}]"
    twice = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: dup}}\nspec: {{{containers}}}\n"
    await session.ask("apply: a list key twice", "PATCH", f"{PODS}/dup?fieldManager=m", twice, content=APPLY)


async def options(session: Session) -> None:
    """Options nobody knows."""
    await session.ask("option: dryRun", "POST", f"{MAPS}?dryRun=Some", config_map("o"))
    await session.ask("option: fieldValidation", "POST", f"{MAPS}?fieldValidation=Some", config_map("o"))
    await session.ask("option: a manager too long", "POST", f"{MAPS}?fieldManager={'m' * 129}", config_map("o"))
    await session.ask("option: force without an apply", "PATCH", f"{MAPS}/held?force=true", {"data": {}}, content=MERGE)
    await session.ask(
        "option: force that is no boolean", "PATCH", f"{MAPS}/held?force=maybe&fieldManager=m", "{}", content=APPLY
    )
    for name, body in {
        "grace that is no number": {"gracePeriodSeconds": "soon"},
        "an unknown propagation": {"propagationPolicy": "Sideways"},
        "dryRun of nonsense": {"dryRun": ["Some"]},
        "another uid": {"preconditions": {"uid": "x"}},
        "another kind": {"apiVersion": "v1", "kind": "Pod"},
        "an unknown field": {"gracePeriod": 5},
        "orphans and propagation": {"orphanDependents": True, "propagationPolicy": "Background"},
    }.items():
        await session.ask(f"delete option: {name}", "DELETE", f"{MAPS}/held?dryRun=All", body)
    await session.ask("delete option: grace in the query", "DELETE", f"{MAPS}/held?gracePeriodSeconds=soon")
    await session.ask("delete option: no JSON", "DELETE", f"{MAPS}/held", b"{")


async def paths(session: Session) -> None:
    """Paths and methods that lead nowhere."""
    for method, path in (
        ("PUT", MAPS),
        ("PATCH", MAPS),
        ("POST", f"{MAPS}/held"),
        ("POST", "/api/v1/configmaps"),
        ("GET", f"{MAPS}/held/status"),
        ("GET", f"{MAPS}/held/a/b"),
        ("GET", "/api/v2/pods"),
        ("GET", "/apis/apps/v1/nonsense"),
        ("GET", "/apis/nonsense.io/v1/things"),
        ("GET", "/apis/nonsense.io"),
        ("GET", "/nonsense"),
        ("GET", f"{PODS}/absent/log"),
        ("DELETE", "/api/v1"),
        ("POST", f"{PODS}/b/status"),
        ("GET", f"{PODS}/b/binding"),
        ("GET", "/api/v1/namespaces/absent/pods"),
        ("GET", "/api/v1/namespaces/absent"),
        ("DELETE", f"{MAPS}/absent"),
        ("PUT", f"{MAPS}/absent"),
        ("OPTIONS", MAPS),
        ("GET", "/api/v1/nodes/absent/status"),
    ):
        body = config_map("absent") if method in ("PUT", "POST") else {} if method == "PATCH" else None
        content = MERGE if method == "PATCH" else None
        await session.ask(f"path: {method} {path}", method, path, body, content=content)
