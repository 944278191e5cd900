"""The search for devices on one node: the first full solution, in a fixed order.

Claim after claim, request after request, alternative after alternative, device after device; whatever fails is
undone and the next is tried (kube-scheduler's structured allocator, v1.36). Devices of one request are chosen in
ascending order, since their order does not matter. A request that cannot be completed with the devices still open
to it is given up at once, where nothing is missed by that.

Not everything is undone, as v1.36 has it (allocator_incubating.go, `allocateDevice`): counters stay drawn for a share
that is given up, and for a device that passes their check and is then refused for a taint or a constraint. So a
search may miss a solution, and which one it finds depends on every step: no step is left out then.

How long a search may last is counted in looks at devices, from the first dead end on, and in what selectors take whose
evaluation takes long: no clock decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Final, NamedTuple

from policyengine.cluster.node_objects import Node
from policyengine.plugins.devices.device import NOTHING, Consumption, Counters, DeviceID, Reading, SliceDevice, fits
from policyengine.plugins.devices.device_pools import Pool, Slice, Taken
from policyengine.plugins.devices.device_request import MOST_RESULTS, AllocationError, Constraint, Wanted, WantedClaim

LOOKS_A_SECOND: Final = 10_000
"""Looks at devices that a second of `filterTimeout` stands for."""


class SearchTooLong(Exception):
    """The search was given up."""


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """A device of a valid pool that the node reaches."""

    device: SliceDevice
    slice: Slice
    pool: Pool


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A device chosen for a request."""

    wanted: Wanted
    source: Open
    consumed: Consumption


class _Row:
    """The devices in the order in which they are tried, none made before it is looked at."""

    def __init__(self, rest: Iterable[Open]) -> None:
        self._seen: list[Open] = []
        self._rest = iter(rest)

    def at(self, place: int) -> Open | None:
        """The device there; None behind the last."""
        while len(self._seen) <= place:
            one = next(self._rest, None)
            if one is None:
                return None
            self._seen.append(one)
        return self._seen[place]

    def all(self) -> list[Open]:
        """All of them."""
        self._seen += self._rest
        return self._seen


class _Place(NamedTuple):
    """The position of the search: `alternative` -1 where it is not chosen yet, `start` the next device to look at."""

    claim: int
    request: int = 0
    alternative: int = -1
    placed: int = 0
    start: int = 0


class Search:
    """One search. `given`, once it has succeeded: per claim the devices in the order of its requests."""

    def __init__(
        self,
        claims: Sequence[WantedClaim],
        pools: Sequence[Pool],
        node: Node,
        taken: Taken,
        read: Reading,
        most_looks: float = inf,
    ) -> None:
        """`read`: takes the attributes whose values the outcome depends on, as devices name them, and the looks.

        Raises:
            AllocationError: a claim, a class or a slice is wrong, or all devices of an incomplete pool are wanted.
            SearchTooLong: to count all devices takes too long.
        """
        self._read = read
        self._claims = claims
        self._taken = taken
        self._most_looks = read.looks + most_looks
        self._met: set[tuple[Wanted, DeviceID]] = set()
        """Those whose selectors took something: it counts once."""
        self._is_astray = False
        """Whether there was a dead end."""
        self._open = _Row(
            Open(device, one, pool) for pool in pools for one in pool.slices for device in one.reached(node)
        )
        self._all: dict[Wanted, list[Open]] = {}
        self._choosing: dict[DeviceID, list[int]] = {}
        """Device -> the claims it is chosen for."""
        self._consuming: dict[DeviceID, list[Consumption]] = {}
        self._drawn: dict[tuple[str, str], Counters] = {}
        self._left: dict[tuple[str, str], Counters] = {}
        self.given: list[list[Given]] = [[] for _ in claims]
        self._least = self._least_wanted(next((pool for pool in pools if pool.incomplete or pool.invalid), None))
        """Per claim, for each of its requests: the fewest devices that it and those after it can be given."""
        self._constraints: list[list[Constraint]] = [one.constraints(self._read) for one in claims]
        each = [constraint for of in self._constraints for constraint in of]
        lossy = any(pool.counters and (each or pool.may_lose_counters) for pool in pools)
        self._every_step = lossy or any(constraint.forgets for constraint in each)
        """Whether it matters what was tried before."""

    def run(self) -> bool:
        """Whether there is a solution.

        Raises:
            AllocationError: a selector has no answer.
            SearchTooLong: nobody knows yet.
        """
        trail: list[Iterator[_Place | None]] = [self._choices(_Place(0))]
        while trail:
            try:
                place = next(trail[-1])
            except StopIteration:
                trail.pop()
                self._is_astray = True
                continue
            if place is None:
                return True
            trail.append(self._choices(place))
        return False

    def _choices(self, place: _Place) -> Iterator[_Place | None]:
        """The places that follow, each after its choice was made; asked for the next, a choice is undone."""
        if place.claim == len(self._claims):
            yield None
            return
        requests = self._claims[place.claim].requests
        if place.request == len(requests):
            yield _Place(place.claim + 1)
            return
        ways = requests[place.request]
        if place.alternative < 0:
            for alternative in range(len(ways)):
                yield place._replace(alternative=alternative)
            return
        yield from self._devices(place, ways[place.alternative])

    def _devices(self, place: _Place, wanted: Wanted) -> Iterator[_Place]:
        count = len(self._all_of(wanted)) if wanted.all_devices else wanted.source.count
        missing = count - place.placed
        if missing <= 0 and place.placed:
            yield _Place(place.claim, place.request + 1)
            return
        after = self._least[place.claim][place.request + 1]
        if count == 0 or len(self.given[place.claim]) + missing + after > MOST_RESULTS:
            return
        for at, one in self._next_of_all(place, wanted) if wanted.all_devices else self._next(place, wanted, missing):
            self._take(place.claim, wanted, one)
            yield place._replace(placed=place.placed + 1, start=at + 1)
            self._give_back(place.claim, wanted, one)

    def _next(self, place: _Place, wanted: Wanted, missing: int) -> Iterator[tuple[int, Open]]:
        """Which devices to try next. Of several that are missing the last ones cannot be the first."""
        usable = self._usable(place, wanted)
        ahead = deque(islice(usable, 0 if self._every_step else missing - 1))
        for one in usable:
            ahead.append(one)
            yield ahead.popleft()

    def _usable(self, place: _Place, wanted: Wanted) -> Iterator[tuple[int, Open]]:
        at = place.start
        while (one := self._open.at(at)) is not None:
            if (
                not self._is_in_use(place.claim, wanted, one)
                and self._selects(wanted, one)
                and self._is_allowed(place.claim, wanted, one)
            ):
                yield at, one
            at += 1

    def _next_of_all(self, place: _Place, wanted: Wanted) -> Iterator[tuple[int, Open]]:
        one = self._all_of(wanted)[place.start]
        if not self._is_in_use(place.claim, wanted, one) and self._is_allowed(place.claim, wanted, one, must=True):
            yield place.start, one

    def _all_of(self, wanted: Wanted) -> list[Open]:
        """All devices that will do, for a request that wants all."""
        found = self._all.get(wanted)
        if found is None:
            selected = (one for one in self._open.all() if self._selects(wanted, one))
            found = self._all[wanted] = [one for one in selected if self._has_room(wanted, one)]
        return found

    def _least_wanted(self, bad: Pool | None) -> list[list[int]]:
        """Where all devices are wanted, every pool must be whole. At most 32 devices can be wanted of a claim."""
        found: list[list[int]] = []
        for claim in self._claims:
            counts = [min([self._wanted_of(wanted, bad) for wanted in ways]) for ways in claim.requests]
            if sum(counts) > MOST_RESULTS:
                what = f"number of requested devices {sum(counts)} exceeds the claim limit of {MOST_RESULTS}"
                raise AllocationError(f"claim {claim.claim.metadata.key}: {what}")
            found.append([sum(counts[place:]) for place in range(len(counts) + 1)])
        return found

    def _wanted_of(self, wanted: Wanted, bad: Pool | None) -> int:
        if not wanted.all_devices:
            return wanted.source.count
        if bad is not None:
            state = "being updated" if bad.incomplete else "invalid"
            what = f"asks for all devices, but resource pool {'/'.join(bad.id)} is currently {state}"
            raise AllocationError(f"claim {wanted.claim}, request {wanted.own_name}: {what}")
        return len(self._all_of(wanted))

    # --- one device -----------------------------------------------------------------------------------

    def _is_in_use(self, claim: int, wanted: Wanted, one: Open) -> bool:
        if self._is_astray:
            self._read.looks += 1
            if self._read.looks > self._most_looks:
                raise SearchTooLong
        if wanted.admin_access:
            return claim in self._choosing.get(one.device.id, ())
        return self._taken.is_held(one.device.id) or bool(self._choosing.get(one.device.id))

    def _selects(self, wanted: Wanted, one: Open) -> bool:
        read, looks, spared = self._read, self._read.looks, self._read.spared
        selected = wanted.selects(one.device, read)
        if read.looks == looks:
            return selected
        if (wanted, one.device.id) in self._met:
            read.looks, read.spared = looks, spared
        self._met.add((wanted, one.device.id))
        if read.looks > self._most_looks:
            raise SearchTooLong
        return selected

    def _is_allowed(self, claim: int, wanted: Wanted, one: Open, must: bool = False) -> bool:
        device, constraints = one.device, self._constraints[claim]
        if not (must or self._has_room(wanted, one)) or not self._has_counters(one):
            return False
        if not wanted.tolerates(device):
            self._draw(one)
            return False
        for at, constraint in enumerate(constraints):
            if not constraint.allows(wanted, device):
                if must:
                    what = f"cannot add device {'/'.join(device.id)} because a claim constraint would not be satisfied"
                    raise AllocationError(f"claim {wanted.claim}, request {wanted.own_name}: {what}")
                for earlier in constraints[:at]:
                    earlier.forget(wanted)
                self._draw(one)
                return False
        if not must or self._has_room(wanted, one):
            return True
        for constraint in constraints:
            constraint.add(wanted, device)
        self._draw(one)
        return False

    def _has_room(self, wanted: Wanted, one: Open) -> bool:
        consumed = wanted.consumes(one.device)
        if consumed is None:
            return False
        if consumed is NOTHING:
            return True
        choosing = self._consuming.get(one.device.id, ())
        return fits(one.device.device, self._taken.consumed(one.device.id), consumed, *choosing)

    def _has_counters(self, one: Open) -> bool:
        if not one.device.draws or self._is_shared(one):
            return True
        left, used, wanted = self._counters_left(one.pool), self._drawn.get(one.pool.id, {}), one.device.draws
        return all(left[key] >= used.get(key, 0) + wanted.get(key, 0) for key in left)

    def _is_shared(self, one: Open) -> bool:
        """Whether shares of the device are given already: then it has drawn on its counters."""
        if not one.device.device.allow_multiple_allocations:
            return False
        return self._taken.is_shared(one.device.id) or bool(self._consuming.get(one.device.id))

    def _counters_left(self, pool: Pool) -> Counters:
        """Below zero where devices that are taken draw more than there is: then nothing that draws is given."""
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = dict(pool.counters)
            for device in pool.devices:
                if self._taken.is_held(device.id) or self._taken.is_shared(device.id):
                    for key, amount in device.draws.items():
                        left[key] -= amount
        return left

    def _take(self, claim: int, wanted: Wanted, one: Open) -> None:
        device = one.device
        self._draw(one)
        consumed = wanted.consumes(device) or NOTHING
        if device.device.allow_multiple_allocations:
            self._consuming.setdefault(device.id, []).append(consumed)
        else:
            self._choosing.setdefault(device.id, []).append(claim)
        for constraint in self._constraints[claim]:
            constraint.add(wanted, device)
        self.given[claim].append(Given(wanted, one, consumed))

    def _give_back(self, claim: int, wanted: Wanted, one: Open) -> None:
        device = one.device
        self.given[claim].pop()
        for constraint in self._constraints[claim]:
            constraint.remove(wanted)
        if device.device.allow_multiple_allocations:
            self._consuming[device.id].pop()
            return
        self._choosing[device.id].pop()
        for key, amount in device.draws.items():
            self._drawn[one.pool.id][key] -= amount

    def _draw(self, one: Open) -> None:
        """Its first share, or the device itself, takes its part of the counters."""
        if one.device.draws and not self._is_shared(one):
            used = self._drawn.setdefault(one.pool.id, {})
            for key, amount in one.device.draws.items():
                used[key] = used.get(key, 0) + amount
