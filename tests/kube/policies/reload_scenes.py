"""What scenes with ConfigMaps that carry policies are made of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.faults import world as worlds
from tests.faults.knowledge import Policy
from tests.faults.objects import MAPS, MERGE
from tests.faults.world import World, play

PIN = """policy "pin" {{
  scheduler "pinned"
  filter "there" {{ require node.name == "{node}" }}
}}
"""
OPEN = 'policy "open" { scheduler "pinned" }'
EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events"
SHADOW = {"policyengine.io/mode": "shadow"}
CANARY = {"policyengine.io/mode": "canary", "policyengine.io/canary-percent": "100"}

Scene = Callable[[World], Awaitable[None]]


def played(scene: Scene, **how: Any) -> World:
    """The world in which the scene was played; the auditor has no objection."""
    objections, world = play(scene, **how)
    assert not objections, f"{objections}\n{world.timeline()}"
    return world


def on_virtual_time(scene: Scene) -> Callable[[], None]:
    """The scene as a test, on two nodes and with a scheduler; the auditor listens."""

    async def whole(world: World) -> None:
        await two_nodes(world)
        await scene(world)

    def test() -> None:
        played(whole)

    test.__name__, test.__doc__ = scene.__name__, scene.__doc__
    return test


async def config_map(
    world: World, name: str, text: str, annotations: dict[str, str] | None = None, seconds: float = 2.0
) -> None:
    """Create it, and let the scheduler look at it."""
    labels = {"policyengine.io/policy": "true"}
    metadata = {"name": name, "labels": labels, "annotations": annotations or {}}
    item = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"a.policy": text}}
    await world.call("POST", MAPS, item)
    await asyncio.sleep(seconds)


async def change(
    world: World, name: str, text: str | None = None, seconds: float = 2.0, **annotations: str | None
) -> None:
    body: dict[str, Any] = {} if text is None else {"data": {"a.policy": text}}
    if annotations:
        named = {f"policyengine.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        body["metadata"] = {"annotations": named}
    await world.call("PATCH", f"{MAPS}/{name}", body, MERGE)
    await asyncio.sleep(seconds)


async def status(world: World, name: str) -> dict[str, Any]:
    annotations = (await world.call("GET", f"{MAPS}/{name}"))["metadata"]["annotations"]
    found: dict[str, Any] = json.loads(annotations["policyengine.io/status"])
    return found


async def events(world: World, name: str) -> list[tuple[str, str, str, int]]:
    """(type, reason, note, how often) of the Events about a ConfigMap, oldest first."""
    items = (await world.call("GET", EVENTS))["items"]
    about = [item for item in items if item["regarding"]["name"] == name]
    assert all(item["regarding"]["kind"] == "ConfigMap" for item in about)
    about.sort(key=lambda item: item["eventTime"])
    return [(item["type"], item["reason"], item["note"], (item.get("series") or {}).get("count", 1)) for item in about]


def written(world: World, kind: str, subresource: str = "") -> list[Any]:
    """Writes of objects of the kind, or of their statuses."""
    writes = [one for _, what, one in world.tape if what == "write"]
    return [one for one in writes if (one.kind, one.subresource) == (kind, subresource)]


async def two_nodes(world: World) -> None:
    """Two nodes, the policies pinned to one of them known to the auditor, and a scheduler."""
    for name in ("n1", "n2"):
        await world.node(name, "99")
        world.knows_policy(PIN.format(node=name), {name})
    world.start()
    await asyncio.sleep(1)


def serves(world: World, text: str) -> None:
    profile = worlds.profiles_of(text)[0]
    world.serves["pinned"] = world.policies.setdefault(profile.policy_hash, Policy("pinned"))
