"""Who else acts in a world: kubelets, controllers, people who drain nodes, and whoever comes between two requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from policyengine.simulator.api_server.http_requests import Request
from tests.faults.objects import MERGE, PODS, Json
from tests.faults.world import World
from tests.faulty_server import effects as fault


def meanwhile(*requests: tuple[str, str, Any], after: bool = False) -> fault.Meanwhile:
    """Others' requests (method, path, body)."""
    made = []
    for method, path, body in requests:
        content = MERGE if method == "PATCH" else "application/json"
        raw = b"" if body is None else json.dumps(body).encode()
        made.append(Request(method, path, {}, {"content-type": content, "user-agent": "meanwhile"}, raw))
    return fault.Meanwhile(tuple(made), after)


async def kubelets(world: World) -> None:
    """They end what is being deleted on their nodes."""
    while True:
        await asyncio.sleep(3)
        for item in (await world.call("GET", PODS))["items"]:
            if item["spec"].get("nodeName") and item["metadata"].get("deletionTimestamp"):
                await world.delete(item["metadata"]["name"])


async def controllers(world: World, made: dict[str, Json]) -> None:
    """Make each of these pods anew, under another name, when it is leaving; by name, and there may come more."""
    while True:
        await asyncio.sleep(2)
        found = {item["metadata"]["name"]: item["metadata"] for item in (await world.call("GET", PODS))["items"]}
        for name, item in list(made.items()):
            if "deletionTimestamp" in found.get(name, {"deletionTimestamp": ""}):
                again = f"{name}-again"
                made[again] = {**made.pop(name), "metadata": {**item["metadata"], "name": again}}
                await world.call("POST", PODS, made[again])


async def of_controllers(world: World, made: dict[str, Json], *pods: Json) -> None:
    """Pods that a controller has just made."""
    for item in pods:
        made[item["metadata"]["name"]] = item
        await world.call("POST", PODS, item)


async def drain(world: World, target: str) -> list[str]:
    """`kubectl drain`; controllers make up for the pods of gangs, under new names, which are returned."""
    await world.patch_node(target, {"spec": {"unschedulable": True}})
    made = []
    for item in (await world.call("GET", PODS))["items"]:
        name, labels, spec = item["metadata"]["name"], item["metadata"].get("labels", {}), item["spec"]
        if spec.get("nodeName") == target:
            await world.delete(name)
            if "podGroup" in labels:
                made.append(f"{name}-again")
                cpu = spec["containers"][0]["resources"]["requests"]["cpu"]
                await world.pod(made[-1], cpu, gang=labels["podGroup"], least=int(labels["minAvailable"]))
    return made
