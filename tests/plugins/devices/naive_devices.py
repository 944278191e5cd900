"""What a claim is given, found by trying everything: written from the API's words, on plain objects, slow.

Shares no code with the plugin. Amounts are whole numbers here, attributes whole numbers too, and a selector is a pair
of an attribute and the value that it must have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
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

    def first(self, claims: list[list[Json]]) -> list[list[tuple[str, str, str]]] | None:
        """Per claim (request, pool, device) of the first allocation in the order of the search; None without one."""
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
            for some in self._choices(claim, name, way, chosen):
                together = [*chosen, *some]
                if sum(one.claim == claim for one in together) <= MOST:
                    yield from self._rest(later, together)

    def _choices(self, claim: int, name: str, way: Json, chosen: list[Chosen]) -> Iterator[list[Chosen]]:
        places = [(pool, device) for pool in self._ordered() for device in pool["devices"] if selected(device, way)]
        if way.get("allocationMode") == "All":
            places = [(pool, device) for pool, device in places if self._has_capacity(pool, device, way, [])]
            sets: Iterator[Any] = iter([places] if places else [])
        else:
            sets = combinations(places, way.get("count", 1))
        for some in sets:
            found: list[Chosen] = []
            for pool, device in some:
                if not self._can_take(claim, pool, device, way, [*chosen, *found]):
                    break
                admin = bool(way.get("adminAccess"))
                found.append(Chosen(claim, name, pool, device, admin, consumed(device, way)))
            else:
                yield found

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
        if any(effect != "None" for effect in device.get("taints", ())) and not way.get("tolerates"):
            return False
        return self._has_capacity(pool, device, way, here) and self._has_counters(pool, device, chosen)

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
        return all(
            sum(draws[name].get(counter, 0) for name in drawing) <= amount
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
