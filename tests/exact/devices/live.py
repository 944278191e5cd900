"""Device worlds as a live kube-scheduler plays them: one pod after another, and what came of each, as facts.

A fact is plain JSON: `{pod, said, node, claims, special}`: the pod as it came; what its condition said, one after the
other; where it was bound; the status of each claim that is another since; the pod's `extendedResourceClaimStatus`.
Names stand for UIDs, and moments and shares are left out, so that the same world has the same facts.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from tests.exact.devices.device_world import DeviceWorld
from tests.exact.random_world import PATHS, collection
from tests.exact.real import AT_ONCE, MERGE, SCHEDULER, Real

Json = dict[str, Any]
Fact = Json

SETTLED = 0.25
"""Seconds after which kube-scheduler has seen what was made."""
PATIENCE = 20
"""Seconds that it may take about a pod."""
AGAIN = ("deallocation of ResourceClaim completed", "deletion of ResourceClaim completed")
"""After such words the pod is tried anew."""
_KINDS = ("Pod", "ResourceClaim", "ResourceSlice", "DeviceClass", "Node")
_SPECIAL = re.compile(r"-extended-resources-[a-z0-9]{5}$")


async def live(real: Real, world: DeviceWorld, settled: float = SETTLED) -> list[Fact]:
    """The facts of a world on a server without one, where a kube-scheduler runs; what is made goes."""
    try:
        for one in world.objects:
            if one["kind"] == "DeviceClass":  # of two for one resource the order counts, too
                await real.make(one)
        await asyncio.gather(*(real.make(one) for one in world.objects if one["kind"] != "DeviceClass"))
        await asyncio.sleep(settled)
        known = await _claims(real)
        facts: list[Fact] = []
        for coming in world.coming:
            fact, now = await _turn(real, coming)
            fact["claims"] = {key: status for key, status in now.items() if known.get(key) != status}
            known = now
            facts.append(fact)
        return facts
    finally:
        await _empty(real)


async def _turn(real: Real, coming: Json) -> tuple[Fact, dict[str, Json]]:
    made = await real.ask("POST", collection(coming), coming | {"spec": coming["spec"] | {"schedulerName": SCHEDULER}})
    uid = made["metadata"]["uid"]

    def decided() -> bool:
        said = real.messages.get(uid, [""])[-1]
        return bool(real.pods.get(uid, {}).get("spec", {}).get("nodeName")) or bool(
            said and not any(again in said for again in AGAIN)
        )

    for _ in range(PATIENCE):
        if await real.until(decided, 1):
            break
        await _attach(real)
    assert decided(), f"not decided: {made['metadata']['name']}, {real.messages.get(uid)}"
    pod = real.pods[uid]
    now = await _claims(real)
    fact: Fact = {"pod": coming, "said": real.messages.get(uid, []), "node": pod["spec"].get("nodeName", "")}
    status = pod["status"].get("extendedResourceClaimStatus")
    if status:
        fact["special"] = status | {"resourceClaimName": plain_name(status["resourceClaimName"])}
    if not fact["node"]:
        await real.remove(pod)
    return fact, now


async def _attach(real: Real) -> None:
    """What a driver does: all binding conditions hold."""
    for claim in (await real.ask("GET", "/apis/resource.k8s.io/v1/resourceclaims"))["items"]:
        devices = attached(claim)
        if devices and not claim["status"].get("devices"):
            path = f"{collection(claim | {'kind': 'ResourceClaim'})}/{claim['metadata']['name']}/status"
            await real.ask("PATCH", path, {"status": {"devices": devices}}, MERGE)


def attached(claim: Json) -> list[Json]:
    """What a driver says of the claim's devices that have to be attached: they are."""
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return [_attached(one) for one in results if one.get("bindingConditions")]


def _attached(result: Json) -> Json:
    condition = {
        "type": "attached",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    about = {name: result[name] for name in ("driver", "pool", "device", "shareID") if name in result}
    return about | {"conditions": [condition]}


async def _claims(real: Real) -> dict[str, Json]:
    items = (await real.ask("GET", "/apis/resource.k8s.io/v1/resourceclaims"))["items"]
    return {f"{one['metadata']['namespace']}/{plain_name(one['metadata']['name'])}": told(one) for one in items}


def plain_name(name: str) -> str:
    """The name without what the server draws by lot."""
    return _SPECIAL.sub("-extended-resources", name)


def told(claim: Json) -> Json:
    """A claim's status as facts tell it; and of one that the scheduler made, all that it says of itself."""
    status: Json = {}
    allocation = claim.get("status", {}).get("allocation")
    if allocation is not None:
        results = [
            one | ({"shareID": str(place)} if "shareID" in one else {})
            for place, one in enumerate(allocation["devices"].get("results", ()))
        ]
        devices = {"results": results} | {
            name: value for name, value in allocation["devices"].items() if name == "config"
        }
        status["allocation"] = {"devices": devices}
        if "nodeSelector" in allocation:
            status["allocation"]["nodeSelector"] = allocation["nodeSelector"]
    users = claim.get("status", {}).get("reservedFor")
    if users:
        status["reservedFor"] = [one["name"] for one in users]
    meta = claim["metadata"]
    if plain_name(meta["name"]) != meta["name"]:
        owners = [{name: value for name, value in one.items() if name != "uid"} for one in meta["ownerReferences"]]
        status["made"] = {"spec": claim["spec"], "annotations": meta["annotations"], "owners": owners}
    return status


async def _empty(real: Real) -> None:
    claims = await real.ask("GET", "/apis/resource.k8s.io/v1/resourceclaims")
    for claim in claims["items"]:
        if claim["metadata"].get("finalizers"):
            path = f"{collection(claim | {'kind': 'ResourceClaim'})}/{claim['metadata']['name']}"
            await real.ask("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    places = {PATHS[kind].format(space) for kind in _KINDS for space in ("default", "admin")}
    await asyncio.gather(*(real.ask("DELETE", place, AT_ONCE) for place in places))
    real.forget()
