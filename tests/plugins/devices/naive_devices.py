"""What a claim is given, found by trying everything: written from the API's words, on plain objects, slow.

Like kube-scheduler 1.36 it does not undo everything: counters stay drawn for a share that it gives up, and for a device
that is refused for a taint after them.

Shares no code with the plugin. Amounts are whole numbers here, attributes whole numbers too, and a selector is a pair
of an attribute and the value that it must have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
MOST = 32


@dataclass(frozen=True)
class Chosen:
    """A device given to a request of a claim."""

    claim: int
    request: str
    pool: Json
    device: Json
    admin: bool
    consumed: dict[str, int] | None
    """Of a device that is shared."""


@dataclass
class NaiveNode:
    """The pools of one node, and what others hold of them."""

    pools: list[Json]
    """{name, devices, counters}"""
    held: set[tuple[str, str]] = field(default_factory=set)
    """(pool, device)"""
    shares: list[tuple[str, str, dict[str, int]]] = field(default_factory=list)
    """(pool, device, what is consumed)"""
    lost: list[tuple[str, Json]] = field(default_factory=list)
    """(pool, what stays drawn of its counters) of the search."""

    def first(self, claims: list[list[Json]]) -> list[list[tuple[str, str, str]]] | None:
        """Per claim (request, pool, device) of the first allocation in the order of the search; None without one."""
        self.lost.clear()
        for found in self._rest([(number, request) for number, claim in enumerate(claims) for request in claim], []):
            return [
                [(one.request, one.pool["name"], one.device["name"]) for one in found if one.claim == number]
                for number in range(len(claims))
            ]
        return None

    def _rest(self, requests: list[tuple[int, Json]], chosen: list[Chosen]) -> Iterator[list[Chosen]]:
        if not requests:
            yield chosen
            return
        (claim, request), *later = requests
        for name, way in ways(request):
            places = [(pool, device) for pool in self._ordered() for device in pool["devices"] if selected(device, way)]
            if way.get("allocationMode") == "All":
                places = [(pool, device) for pool, device in places if self._has_capacity(pool, device, way, [])]
                way = way | {"count": len(places)}
            if places:
                yield from self._picked(claim, name, way, places, chosen, later)

    def _picked(
        self, claim: int, name: str, way: Json, places: list[Any], chosen: list[Chosen], later: list[tuple[int, Json]]
    ) -> Iterator[list[Chosen]]:
        """The devices of one request, one after the other, each behind the one before."""
        here = [one for one in chosen if (one.claim, one.request) == (claim, name)]
        if len(here) == way.get("count", 1):
            if sum(one.claim == claim for one in chosen) <= MOST:
                yield from self._rest(later, chosen)
            return
        for at, (pool, device) in enumerate(places):
            if self._can_take(claim, pool, device, way, chosen):
                one = Chosen(claim, name, pool, device, bool(way.get("adminAccess")), consumed(device, way))
                yield from self._picked(claim, name, way, places[at + 1 :], [*chosen, one], later)
                if device.get("shared"):
                    self._lose(pool, device, chosen)
            if way.get("allocationMode") == "All":
                return

    def _ordered(self) -> list[Json]:
        return sorted(
            self.pools, key=lambda pool: (any("bindingConditions" in one for one in pool["devices"]), pool["name"])
        )

    def _can_take(self, claim: int, pool: Json, device: Json, way: Json, chosen: list[Chosen]) -> bool:
        here = [one for one in chosen if one.pool is pool and one.device is device]
        if way.get("adminAccess"):
            if not device.get("shared") and any(one.claim == claim for one in here):
                return False
        elif (pool["name"], device["name"]) in self.held or (here and not device.get("shared")):
            return False
        if not self._has_capacity(pool, device, way, here) or not self._has_counters(pool, device, chosen):
            return False
        if any(effect != "None" for effect in device.get("taints", ())) and not way.get("tolerates"):
            self._lose(pool, device, chosen)
            return False
        return True

    def _lose(self, pool: Json, device: Json, chosen: list[Chosen]) -> None:
        shares = [(where, name) for where, name, _ in self.shares]
        shares += [(one.pool["name"], one.device["name"]) for one in chosen if one.device.get("shared")]
        if (pool["name"], device["name"]) not in shares:
            self.lost.append((pool["name"], device.get("draws", {})))

    def _has_capacity(self, pool: Json, device: Json, way: Json, here: list[Chosen]) -> bool:
        asked: dict[str, int] = way.get("capacity", {})
        if not asked and not device.get("shared"):
            return True
        if not asked.keys() <= device["capacity"].keys():
            return False
        for name, capacity in device["capacity"].items():
            amount = rounded(asked.get(name), capacity)
            if amount is None:
                return False
            others = [share for where, one, share in self.shares if (where, one) == (pool["name"], device["name"])]
            others += [one.consumed for one in here if one.consumed is not None]
            if amount + sum(other.get(name, 0) for other in others) > capacity["value"]:
                return False
        return True

    def _has_counters(self, pool: Json, device: Json, chosen: list[Chosen]) -> bool:
        if not device.get("draws"):
            return True
        sharing = {name for where, name, _ in self.shares if where == pool["name"]}
        drawing = [name for where, name in self.held if where == pool["name"]] + sorted(sharing)
        for one in [*[one.device for one in chosen if one.pool is pool], device]:
            if one is device and one["name"] in sharing:
                return True
            if one["name"] not in sharing:
                drawing.append(one["name"])
            if one.get("shared"):
                sharing.add(one["name"])
        draws = {one["name"]: one.get("draws", {}) for one in pool["devices"]}
        lost = [drawn for where, drawn in self.lost if where == pool["name"]]
        return all(
            sum(drawn.get(counter, 0) for drawn in [*lost, *(draws[name] for name in drawing)]) <= amount
            for counter, amount in pool["counters"].items()
        )


def ways(request: Json) -> Iterator[tuple[str, Json]]:
    """(the name in results, the way) of each alternative."""
    if "ways" not in request:
        yield request["name"], request
        return
    for way in request["ways"]:
        yield f"{request['name']}/{way['name']}", way


def selected(device: Json, way: Json) -> bool:
    """Whether the selectors are true of the device."""
    return all(device["attributes"].get(name) == value for name, value in way.get("selectors", ()))


def consumed(device: Json, way: Json) -> dict[str, int] | None:
    """What a share takes of each capacity."""
    if not device.get("shared"):
        return None
    asked = way.get("capacity", {})
    return {name: rounded(asked.get(name), capacity) or 0 for name, capacity in device["capacity"].items()}


def rounded(asked: int | None, capacity: Json) -> int | None:
    """The amount that a request means; None where a policy forbids it."""
    policy = capacity.get("policy", {})
    if asked is None:
        return int(policy.get("default", capacity["value"]))
    if "validValues" in policy:
        return next((one for one in policy["validValues"] if one >= asked), None)
    if "validRange" in policy:
        valid = policy["validRange"]
        amount = valid["min"]
        while amount < asked:
            amount += valid.get("step", asked - amount)
        return None if amount > valid.get("max", amount) else amount
    return asked
