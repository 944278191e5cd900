"""A small cluster with devices from a seed, and the pods that come one after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.exact.devices import claims, slices
from tests.exact.devices.claims import RESOURCE, SPACES

Json = dict[str, Any]

THEMES = (
    slices.POOLS,
    slices.NETWORK,
    slices.COUNTERS,
    slices.CAPACITY,
    slices.TAINTS,
    slices.BINDING,
    claims.ALTERNATIVES,
    claims.ADMIN,
    claims.EXTENDED,
    claims.CONFIG,
    claims.ALLOCATED,
)


@dataclass
class DeviceWorld:
    """`objects` in the order in which they are made; those with a status have it written after them."""

    seed: int
    themes: frozenset[str]
    objects: list[Json] = field(default_factory=list)
    coming: list[Json] = field(default_factory=list)


def device_world(seed: int, of: tuple[str, ...] = THEMES) -> DeviceWorld:
    """`of`: the themes to choose from."""
    rng = Random(seed)
    themes = frozenset(rng.sample(of, min(len(of), rng.choice((0, 1, 1, 2, 2, 3)))))
    made = DeviceWorld(seed, themes)
    nodes = [f"n{number}" for number in range(rng.choice((1, 2, 2, 3, 4)))]
    made.objects += [_node(rng, name, themes) for name in nodes]
    made.objects += claims.classes(rng, themes)
    made.objects += slices.slices(rng, nodes, themes)
    named: dict[str, list[str]] = {}
    for space in SPACES[: 2 if claims.ADMIN in themes else 1]:
        named[space] = [f"c{number}" for number in range(rng.randint(2, 5))]
        made.objects += [claims.claim(rng, space, name, nodes, themes) for name in named[space]]
    _leave_one_idle(made.objects)
    for number in range(rng.randint(3, 6)):
        space = rng.choice(sorted(named))
        made.coming.append(claims.pod(rng, f"p{number}", space, named[space], themes))
    if any(one.get("status", {}).get("allocatable", {}).get(RESOURCE, "0") != "0" for one in made.objects):
        _keep_apart(made.coming)
    return made


def _keep_apart(pods: list[Json]) -> None:
    """Where device plugins give the extended resources kube-scheduler fails on pods that have claims besides."""
    for one in pods:
        asked = (name for c in one["spec"]["containers"] for name in c["resources"]["requests"])
        if any("/" in name for name in asked):
            one["spec"].pop("resourceClaims", None)


def _leave_one_idle(objects: list[Json]) -> None:
    """Of several allocated claims that nobody uses kube-scheduler deallocates any: so there is one at most."""
    idle = [one for one in objects if one.get("status", {}).get("allocation") and "reservedFor" not in one["status"]]
    for one in idle[1:]:
        one["status"]["reservedFor"] = [claims.OTHER]


def _node(rng: Random, name: str, themes: frozenset[str]) -> Json:
    labels = {"kubernetes.io/hostname": name, slices.ZONE: rng.choice(slices.ZONES)}
    offered = {"cpu": str(rng.choice((2, 4, 8, 16))), "memory": f"{rng.choice((4, 8, 32))}Gi", "pods": "110"}
    if claims.EXTENDED in themes and rng.random() < 0.4:
        offered[RESOURCE] = rng.choice(("0", "1", "2"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": offered, "capacity": offered},
    }
