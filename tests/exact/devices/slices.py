"""Random slices of devices, as an API server takes them: few devices, so that they run out."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

GPU, NET = "gpu.example.com", "net.example.com"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("a", "b")

COUNTERS, CAPACITY, TAINTS, BINDING = "counters", "capacity", "taints", "binding"
POOLS, NETWORK = "pools", "network"
"""Pools of several slices, whole or not; pools that many nodes reach."""


def slices(rng: Random, nodes: list[str], themes: frozenset[str]) -> list[Json]:
    """What the drivers of a cluster offer."""
    made = [one for node in nodes if rng.random() < 0.9 for one in _pool(rng, node, themes)]
    if NETWORK in themes:
        made += _network(rng, nodes, themes)
    return made


def _pool(rng: Random, node: str, themes: frozenset[str]) -> list[Json]:
    if COUNTERS in themes and rng.random() < 0.7:
        return _partitionable(rng, node, themes)
    if POOLS in themes and rng.random() < 0.6:
        return _several(rng, node, themes)
    devices = [device(rng, f"d{number}", themes) for number in range(rng.randint(1, 6))]
    return [_slice(f"{node}-gpu", GPU, node, {"nodeName": node}, {"devices": devices})]


def _slice(name: str, driver: str, pool: str, reach: Json, content: Json, generation: int = 1, count: int = 1) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            **reach,
            **content,
        },
    }


def _several(rng: Random, node: str, themes: frozenset[str]) -> list[Json]:
    """Two slices of a pool: whole, or with one missing, of two generations, with a device listed twice."""
    way = rng.choice(("whole", "whole", "missing", "generations", "twice"))
    first = [device(rng, f"d{number}", themes) for number in range(rng.randint(1, 3))]
    second = [device(rng, f"e{number}", themes) for number in range(rng.randint(1, 2))]
    if way == "twice":
        second.append(device(rng, "d0", themes))
    generations = (1, 2) if way == "generations" else (1, 1)
    count = {"missing": 3, "generations": 1}.get(way, 2)
    reach = {"nodeName": node}
    names = rng.sample((f"{node}-a", f"{node}-b"), 2)
    return [
        _slice(names[0], GPU, node, reach, {"devices": first}, generations[0], count),
        _slice(names[1], GPU, node, reach, {"devices": second}, generations[1], count),
    ]


def _partitionable(rng: Random, node: str, themes: frozenset[str]) -> list[Json]:
    """One slice says what the cards have, the other how they can be cut."""
    cards = [f"card-{number}" for number in range(rng.randint(1, 2))]
    sets = [{"name": card, "counters": {"memory": {"value": "40Gi"}, "engines": {"value": "4"}}} for card in cards]
    devices: list[Json] = []
    for card in cards:
        for share in rng.sample((1, 1, 2, 4), rng.randint(1, 4)):
            made = device(rng, f"{card}-{len(devices)}", themes)
            counters = {"memory": {"value": f"{10 * share}Gi"}, "engines": {"value": str(share)}}
            if rng.random() < 0.2:
                del counters["engines"]
            known = card if rng.random() < 0.97 else "nowhere"
            devices.append(made | {"consumesCounters": [{"counterSet": known, "counters": counters}]})
    rng.shuffle(devices)
    reach = {"nodeName": node}
    return [
        _slice(f"{node}-counters", GPU, node, reach, {"sharedCounters": sets}, 1, 2),
        _slice(f"{node}-devices", GPU, node, reach, {"devices": devices}, 1, 2),
    ]


def _network(rng: Random, nodes: list[str], themes: frozenset[str]) -> list[Json]:
    """Devices that several nodes reach: all, those of a zone, or some for each device."""
    way = rng.choice(("all", "zone", "each"))
    devices = [device(rng, f"n{number}", themes) for number in range(rng.randint(1, 4))]
    if way == "all":
        return [_slice("network", NET, "network", {"allNodes": True}, {"devices": devices})]
    if way == "zone":
        return [
            _slice(f"network-{zone}", NET, f"network-{zone}", {"nodeSelector": _in_zone(zone)}, {"devices": devices})
            for zone in ZONES
        ]
    for one in devices:
        one |= rng.choice(({"allNodes": True}, {"nodeName": rng.choice(nodes)}, {"nodeSelector": _in_zone("a")}))
    return [_slice("network", NET, "network", {"perDeviceNodeSelection": True}, {"devices": devices})]


def _in_zone(zone: str) -> Json:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]}


def device(rng: Random, name: str, themes: frozenset[str]) -> Json:
    """A device with a model, an index, perhaps a root and a version."""
    attributes: Json = {"model": {"string": rng.choice(("big", "small"))}, "index": {"int": rng.randint(0, 2)}}
    if rng.random() < 0.97:
        attributes["example.com/root"] = {"string": rng.choice(("r0", "r1"))}
    if rng.random() < 0.97:
        attributes["version"] = {"version": rng.choice(("1.2.3", "2.0.0"))}
    if rng.random() < 0.3:
        attributes["healthy"] = {"bool": rng.random() < 0.7}
    made: Json = {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": rng.choice(("10Gi", "40Gi"))}},
    }
    if CAPACITY in themes and rng.random() < 0.6:
        made |= {"allowMultipleAllocations": True, "capacity": _shared_capacity(rng)}
    if TAINTS in themes and rng.random() < 0.35:
        effect = rng.choice(("NoSchedule", "NoSchedule", "NoExecute", "None"))
        made["taints"] = [{"key": rng.choice(("sick", "old")), "value": "yes", "effect": effect}]
    if BINDING in themes and rng.random() < 0.25:
        made |= {
            "bindsToNode": rng.random() < 0.5,
            "bindingConditions": ["attached"],
            "bindingFailureConditions": ["failed"],
        }
    return made


def _shared_capacity(rng: Random) -> Json:
    """Amounts that several can have parts of."""
    memory: Json = {"value": rng.choice(("10Gi", "40Gi"))}
    way = rng.choice(("any", "range", "values", "default"))
    if way == "range":
        valid = {"min": "2Gi"} | rng.choice(({}, {"max": "8Gi"}, {"step": "2Gi"}, {"max": "10Gi", "step": "4Gi"}))
        memory["requestPolicy"] = {"default": "2Gi", "validRange": valid}
    elif way == "values":
        memory["requestPolicy"] = {"default": "4Gi", "validValues": ["2Gi", "4Gi", "8Gi"]}
    elif way == "default":
        memory["requestPolicy"] = {"default": "1Gi"}
    capacity = {"memory": memory}
    if rng.random() < 0.3:
        capacity["bandwidth"] = {"value": "100"}
    return capacity
