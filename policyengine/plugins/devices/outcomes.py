"""What the search for devices comes to on each node, kept for as long as nothing that it depends on changes.

Of two kinds of nodes:
1. Those whose slices are all their own, each alone in its pool, and without counters. Nodes whose slices look alike,
   with the same devices taken, share what was found. It holds when slices come and go, for it says how devices look.
2. Others. What was found for the same slices holds until one of their pools is drawn on, or any slice changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import inf
from typing import Final

import msgspec

from policyengine.cluster.node_objects import Node
from policyengine.enum_members import direct_members
from policyengine.plugins.devices.device import Reading
from policyengine.plugins.devices.device_pools import Pools, Reached, Taken
from policyengine.plugins.devices.device_request import AllocationError, WantedClaim
from policyengine.plugins.devices.device_search import Given, Search, SearchTooLong

MOST_KEPT: Final = 256
"""Different things asked for whose outcomes are kept."""
MOST_LOOKS_KEPT: Final = 1 << 14
"""Different looks of nodes whose outcomes are kept for one thing asked for."""

SEARCHES: Final = 2
"""Searches of full length that a pod may have at once: one a node would take minutes where no two nodes look alike."""

_encode = msgspec.msgpack.Encoder().encode


@direct_members
class Verdict(IntEnum):
    """How a search ended."""

    FOUND = 0
    NOTHING = 1
    """Not all claims can be allocated."""
    INVALID_POOLS = 2
    """As NOTHING, and a pool contradicts itself."""
    TOO_LONG = 3
    FAILED = 4
    """A claim, a class or a slice is wrong."""
    CANNOT_FIT = 5
    """An extended resource that neither a device plugin nor a class has."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a search came to. `ways`: per claim, which ways to satisfy its requests were taken."""

    verdict: Verdict
    ways: tuple[frozenset[str], ...] = ()


_UNTRIED: Final = Outcome(Verdict.TOO_LONG)
"""Of a node that was not searched: those before it took too long. Not kept."""
_Alike = dict[tuple[str, ...], dict[tuple[int, ...], Outcome]]
"""Attributes that the outcome depends on -> how the slices look in these -> the outcome."""


class _Found:
    """The outcomes for what was asked for."""

    def __init__(self) -> None:
        self.alike: dict[Hashable, _Alike] = {}
        self.exact: dict[Reached, tuple[int, Outcome]] = {}
        """What a node reaches -> what its pools' versions summed up to, and the outcome then."""
        self.kept = 0

    def put(self, key: Hashable, names: tuple[str, ...], looks: tuple[int, ...], outcome: Outcome) -> None:
        """For nodes that look so."""
        if self.kept >= MOST_LOOKS_KEPT:
            self.alike.clear()
            self.kept = 0
        self.alike.setdefault(key, {}).setdefault(names, {})[looks] = outcome
        self.kept += 1


class Devices:
    """The pools, what is taken of them, and the outcomes found so far, by what was asked for."""

    def __init__(self, pools: Pools, taken: Taken, most_looks: float = inf) -> None:
        self.pools = pools
        self.taken = taken
        self._most_looks = most_looks
        self._left: float = inf
        """Looks left for all searches of `begin`."""
        self._found: dict[bytes, _Found] = {}

    def slices_changed(self) -> None:
        """A slice came, changed or went."""
        self.pools.forget()
        for found in self._found.values():
            found.exact.clear()

    def classes_changed(self) -> None:
        """A class came, changed or went."""
        self._found.clear()

    @property
    def is_exhausted(self) -> bool:
        """Whether searches have taken all that there was for them: some nodes may not have been searched."""
        return self._left <= 0

    def begin(self) -> None:
        """Nodes are asked about anew: `SEARCHES` of full length are made for them, and many more short ones. What they
        find is kept, so who asks again comes further."""
        self._left = SEARCHES * self._most_looks

    def asked(self, wanted: Sequence[WantedClaim]) -> Outcomes:
        """The outcomes for these claims. Pods whose claims ask for the same share them."""
        key = _encode([(one.claim.spec.devices.requests, one.claim.spec.devices.constraints) for one in wanted])
        if key not in self._found and len(self._found) >= MOST_KEPT:
            self._found.clear()
        return Outcomes(self, wanted, self._found.setdefault(key, _Found()))

    def search(self, wanted: Sequence[WantedClaim], node: Node, read: Reading) -> list[list[Given]] | Verdict:
        """Per claim the devices that it gets on the node, or why it gets none. Adds to `read` the attributes whose
        values that depends on.

        Raises:
            AllocationError: a claim, a class or a slice is wrong.
        """
        pools = self.pools.reached(node).pools
        before = read.looks - read.spared
        try:
            search = Search(wanted, pools, node, self.taken, read, self._most_looks)
            if search.run():
                return search.given
        except SearchTooLong:
            return Verdict.TOO_LONG
        finally:
            self._left -= read.looks - read.spared - before
        return Verdict.INVALID_POOLS if any(pool.invalid for pool in pools) else Verdict.NOTHING


class Outcomes:
    """The outcomes for a pod's claims, node by node."""

    def __init__(self, devices: Devices, wanted: Sequence[WantedClaim], found: _Found) -> None:
        self._devices = devices
        self._wanted = wanted
        self._found = found
        self._held: dict[Reached, Outcome] = {}
        """Those of `exact` that are known to hold: nothing is taken or given back while a pod is asked about."""

    def on(self, node: Node) -> Outcome:
        """What the search comes to on the node."""
        pools, taken = self._devices.pools, self._devices.taken
        alike = pools.alike(node)
        if alike is None:
            reached = pools.reached(node)
            held = self._held.get(reached)
            if held is None:
                version = sum(taken.version(pool) for pool in reached.drawn_from)
                known = self._found.exact.get(reached)
                if known is None or known[0] != version:
                    known = (version, self._search(node, Reading()))
                    if known[1] is _UNTRIED:
                        return _UNTRIED
                    self._found.exact[reached] = known
                held = self._held[reached] = known[1]
            return held
        key = tuple([(one.shape, taken.of_slice(one)) for one in alike])
        for names, outcomes in self._found.alike.get(key, {}).items():
            outcome = outcomes.get(tuple([one.look(names) for one in alike]))
            if outcome is not None:
                return outcome
        read = Reading()
        outcome = self._search(node, read)
        if outcome is _UNTRIED:
            return outcome
        names = tuple(sorted(read))
        self._found.put(key, names, tuple([one.look(names) for one in alike]), outcome)
        return outcome

    def given(self, node: Node) -> list[list[Given]] | Verdict:
        """Per claim the devices that it gets on the node, or why it gets none. Searches anew.

        Raises:
            AllocationError: a claim, a class or a slice is wrong.
        """
        return self._devices.search(self._wanted, node, Reading())

    def _search(self, node: Node, read: Reading) -> Outcome:
        if self._devices.is_exhausted:
            return _UNTRIED
        try:
            found = self._devices.search(self._wanted, node, read)
        except AllocationError:
            return Outcome(Verdict.FAILED)
        if isinstance(found, Verdict):
            return Outcome(found)
        return Outcome(Verdict.FOUND, tuple([frozenset([one.wanted.name for one in given]) for given in found]))
