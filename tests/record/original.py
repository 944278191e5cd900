"""The 74 calls of `../shared/recorded/apiserver-1.36.json`, made again on any server.

What that recording did between its calls (it created n2 and p2 to p8, bound p8 while watching) is done here too. The
server must be fresh. Compare with the file itself:

    python -m tests.record compare ../shared/recorded/apiserver-1.36.json RECORDING
"""

import json
from typing import Any
from urllib.parse import quote, unquote

from tests.record.session import ADMIN, Session
from tests.shared_facts import shared
from tests.simulator.api_server.recorded import Mapping, differences

TRANSLATED = ("uid", "resourceVersion", "name")


async def run(session: Session) -> None:
    """All of them, in order."""
    calls: list[dict[str, Any]] = json.loads(shared("recorded/apiserver-1.36.json").read_text(encoding="utf-8"))
    mapping = Mapping()
    for call in calls:
        await _before(session, calls, call["name"])
        asked = call["request"]
        path, body = _path(asked["path"], mapping), _body(call["name"], asked.get("body"), mapping)
        if "watch" in call:
            then = _binds_p8(session) if call["name"].startswith("watch with fieldSelector") else None
            events = await session.watch(call["name"], path, len(call["watch"]), then, ends="timeout" in call["name"])
            differences(call["watch"], events, mapping)
            continue
        answer = await session.ask(
            call["name"],
            asked["method"],
            path,
            body,
            accept=asked.get("accept") or "application/json",
            content=asked.get("contentType"),
            user=asked.get("user") or ADMIN,
        )
        differences(call["response"]["body"], answer, mapping)


def _path(path: str, mapping: Mapping) -> str:
    bare, _, query = path.partition("?")
    pairs = []
    for pair in query.split("&") if query else []:
        name, _, value = pair.partition("=")
        if name in ("resourceVersion", "continue"):
            value = quote(mapping.ours.get(unquote(value), unquote(value)))
        pairs.append(f"{name}={value}")
    translated = mapping.translate(unquote(bare))
    return f"{translated}?{'&'.join(pairs)}" if pairs else translated


def _body(name: str, recorded: Any, mapping: Mapping) -> Any:
    if name == "configmap too large":
        meta = {"name": "big2", "namespace": "kube-system"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"x": "x" * 1048577}}
    return _object(recorded, "", mapping) if isinstance(recorded, dict) else recorded


def _object(value: Any, key: str, mapping: Mapping) -> Any:
    if isinstance(value, dict):
        return {k: _object(v, k, mapping) for k, v in value.items()}
    return mapping.ours.get(value, value) if isinstance(value, str) and key in TRANSLATED else value


async def _before(session: Session, calls: list[dict[str, Any]], name: str) -> None:
    made = {call["name"]: call["request"]["body"] for call in calls if call["name"].startswith("create ")}
    if name == "create node again: already exists":
        node = json.loads(json.dumps(made["create node"]).replace('"n1"', '"n2"'))
        await session.quietly("POST", "/api/v1/nodes", node)
    if name == "create pod with generateName":
        pod = made["create pod: defaults filled in"]
        for number in range(2, 9):
            copy = {**pod, "metadata": {**pod["metadata"], "name": f"p{number}"}}
            await session.quietly("POST", "/api/v1/namespaces/default/pods", copy)
    if name.startswith("watch from a resourceVersion older") and session.compact is not None:
        await session.compact()


def _binds_p8(session: Session) -> Any:
    async def bind() -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p8"}, "target": target}
        await session.quietly("POST", "/api/v1/namespaces/default/pods/p8/binding", body)

    return bind
