"""The pools of devices that a node reaches, and what claims hold of them.

Source: dynamic-resource-allocation's structured allocator (pools, incubating), v1.36:
1. Only slices of a pool's newest generation count. A pool whose newer slices do not reach the node is passed over.
2. A pool with fewer slices than it says is incomplete; one with two devices of a name, or with counters that do not
   exist, is invalid. Neither gives devices.
3. Pools are tried by driver and name, slices by name, devices as listed: drivers steer by that. Pools that have a
   device with binding conditions come last.
4. Devices given with admin access are not held. A device that allows several allocations is held in shares, each with
   what it consumes of the capacities (KEP-5075).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from policyengine import quantity
from policyengine.cluster.device_objects import (
    AllocationResult,
    Device,
    ResourceClaim,
    ResourceSlice,
    ResourceSliceSpec,
)
from policyengine.cluster.node_objects import Node, NodeSelector
from policyengine.cluster.object_store import PendingClaim
from policyengine.plugins.devices.device import DeviceID, SliceDevice
from policyengine.plugins.selectors.node_selector import Selector, compile_selector

PoolID = tuple[str, str]
"""Driver, pool."""
Counters = dict[tuple[str, str], int]
"""(counter set, counter) -> billionths."""


@dataclass(frozen=True, slots=True)
class Reach:
    """From which nodes a slice, or a device of it, is reached."""

    node_name: str = ""
    all_nodes: bool = False
    selector: Selector | None = None

    def holds(self, node: Node) -> bool:
        """Whether the node reaches it."""
        if self.node_name:
            return node.metadata.name == self.node_name
        return self.all_nodes or (self.selector is not None and self.selector.matches(node))


class Slice:
    """A slice with its devices; made once for each version of a `ResourceSlice`."""

    __slots__ = ("_each", "_reach", "devices", "number", "per_device", "pool", "source")
    _numbers = count()

    def __init__(self, source: ResourceSlice) -> None:
        spec = source.spec
        self.source = source
        self.number = next(self._numbers)
        """Another one for every slice and version."""
        self.pool: PoolID = (spec.driver, spec.pool.name)
        self.devices = tuple(SliceDevice(spec.driver, spec.pool.name, device) for device in spec.devices)
        self._reach = _reach(spec)
        self.per_device = spec.per_device_node_selection
        self._each = {d.id: _reach(d.device) for d in self.devices} if spec.per_device_node_selection else {}

    @property
    def spec(self) -> ResourceSliceSpec:
        """As written."""
        return self.source.spec

    @property
    def local_to(self) -> str:
        """The one node that the slice can matter to; "" where there may be others."""
        return "" if self.spec.shared_counters else self._reach.node_name

    def matters_to(self, node: Node) -> bool:
        """Whether the node reaches a device of it, or needs its counters."""
        if self.spec.shared_counters:
            return True
        if self._reach_is_set():
            return self._reach.holds(node)
        return any(reach.holds(node) for reach in self._each.values())

    def reaches(self, device: SliceDevice, node: Node) -> bool:
        """Whether the node reaches the device, given that the slice matters to it."""
        return not self._each or self._each[device.id].holds(node)

    def _reach_is_set(self) -> bool:
        return bool(self._reach.node_name) or self._reach.all_nodes or self._reach.selector is not None


@dataclass(slots=True, eq=False)
class Pool:
    """A pool as one node sees it."""

    id: PoolID
    slices: tuple[Slice, ...] = ()
    """With devices for the node, by name."""
    incomplete: bool = False
    invalid: bool = False
    counters: Counters = field(default_factory=dict)
    """What the devices of the pool share, before anything is allocated."""
    devices: tuple[SliceDevice, ...] = ()
    """All devices that draw on the counters, the node's or not."""


class Pools:
    """All slices of a cluster, by the nodes they matter to."""

    def __init__(self, slices: Iterable[ResourceSlice], before: Pools | None = None) -> None:
        """`before`: an older one, whose unchanged slices are taken over."""
        known = before._slices if before is not None else {}
        self._slices: dict[str, Slice] = {}
        self._shared: list[Slice] = []
        self._local: dict[str, list[Slice]] = {}
        self._by_pool: dict[PoolID, list[Slice]] = {}
        self._gathered: dict[tuple[int, ...], tuple[Pool, ...]] = {}
        for source in slices:
            old = known.get(source.metadata.name)
            self._add(old if old is not None and old.source is source else Slice(source))

    def _add(self, one: Slice) -> None:
        self._slices[one.source.metadata.name] = one
        self._by_pool.setdefault(one.pool, []).append(one)
        if one.local_to:
            self._local.setdefault(one.local_to, []).append(one)
        else:
            self._shared.append(one)

    def slices_of(self, node: Node) -> tuple[Slice, ...]:
        """The slices that matter to a node."""
        local = self._local.get(node.metadata.name, ())
        if not self._shared:
            return tuple(local)
        return (*local, *(one for one in self._shared if one.matters_to(node)))

    def situation(self, node: Node, slices: tuple[Slice, ...]) -> tuple[int, ...]:
        """Equal for nodes that reach the same devices, `slices` being those that matter to the node."""
        numbers = [one.number for one in slices]
        for one in slices:
            if one.per_device:
                numbers += [int(one.reaches(each, node)) for each in one.devices]
        return tuple(numbers)

    def pools_of(self, slices: tuple[Slice, ...]) -> tuple[Pool, ...]:
        """The pools that a node reaches, given the slices that matter to it, in the order they are tried."""
        key = tuple(one.number for one in slices)
        pools = self._gathered.get(key)
        if pools is None:
            pools = self._gathered[key] = self._gather(slices)
        return pools

    def _gather(self, slices: Sequence[Slice]) -> tuple[Pool, ...]:
        newest: dict[PoolID, list[Slice]] = {}
        for one in slices:
            others = newest.get(one.pool)
            if others is None or one.spec.pool.generation > others[0].spec.pool.generation:
                newest[one.pool] = [one]
            elif one.spec.pool.generation == others[0].spec.pool.generation:
                others.append(one)
        built = (self._pool(pool, members) for pool, members in sorted(newest.items(), key=lambda item: item[0]))
        return tuple(sorted((pool for pool in built if pool is not None), key=_has_binding_conditions))

    def _pool(self, pool: PoolID, members: list[Slice]) -> Pool | None:
        generation, expected = members[0].spec.pool.generation, members[0].spec.pool.resource_slice_count
        everyone = members
        if len(members) != expected:
            if any(one.spec.pool.generation > generation for one in self._by_pool[pool]):
                return None
            everyone = [one for one in self._by_pool[pool] if one.spec.pool.generation == generation]
            if len(everyone) != expected:
                return Pool(pool, incomplete=True)
        return _built(pool, sorted(members, key=lambda one: one.source.metadata.name), everyone)


def _built(pool: PoolID, members: Sequence[Slice], everyone: Sequence[Slice]) -> Pool:
    targeting = tuple(one for one in members if not one.spec.shared_counters)
    names = [device.id for one in targeting for device in one.devices]
    if len(set(names)) != len(names):
        return Pool(pool, invalid=True)
    counters = _counters(members)
    devices = tuple(device for one in everyone for device in one.devices)
    if counters is None or any(key not in counters for device in devices for key in drawn(device.device)):
        return Pool(pool, invalid=True)
    return Pool(pool, targeting, counters=counters, devices=devices)


def _has_binding_conditions(pool: Pool) -> bool:
    return any(device.device.binding_conditions for one in pool.slices for device in one.devices)


def _counters(slices: Iterable[Slice]) -> Counters | None:
    """None where a set is there twice, or an amount is no quantity."""
    counters: Counters = {}
    seen: set[str] = set()
    for one in slices:
        for group in one.spec.shared_counters:
            if group.name in seen:
                return None
            seen.add(group.name)
            for name, counter in group.counters.items():
                try:
                    counters[group.name, name] = quantity.nanos(counter.value)
                except quantity.QuantityError:
                    return None
    return counters


def drawn(device: Device) -> Mapping[tuple[str, str], int]:
    """What the device draws from counters while it is allocated: (counter set, counter) -> billionths. A malformed
    amount counts as more than any counter holds."""
    amounts: Counters = {}
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            try:
                amount = quantity.nanos(counter.value)
            except quantity.QuantityError:
                amount = quantity.MAX_INT64 * 10**9
            key = (consumption.counter_set, name)
            amounts[key] = amounts.get(key, 0) + amount
    return amounts


def _reach(source: ResourceSliceSpec | Device) -> Reach:
    selector: NodeSelector | None = source.node_selector
    return Reach(source.node_name or "", source.all_nodes, compile_selector(selector) if selector is not None else None)


_NOTHING: Mapping[str, int] = {}
_Holding = tuple[DeviceID, bool, tuple[tuple[str, int], ...]]
"""Device, whether it is a share, and what the share consumes."""


class Taken:
    """Who holds what, as the claims seen last, and the reservations, say."""

    def __init__(self) -> None:
        self._claims: dict[str, ResourceClaim] = {}
        self._pending: tuple[PendingClaim, ...] = ()
        self._whole: Counter[DeviceID] = Counter()
        self._shares: Counter[DeviceID] = Counter()
        self._consumed: dict[DeviceID, Counter[str]] = {}
        self._versions: Counter[tuple[str, str]] = Counter()

    def is_held(self, device: DeviceID) -> bool:
        """Whether a claim has the device for itself."""
        return self._whole[device] > 0

    def is_shared(self, device: DeviceID) -> bool:
        """Whether claims have shares of the device."""
        return self._shares[device] > 0

    def consumed(self, device: DeviceID) -> Mapping[str, int]:
        """What the shares of the device consume, in billionths."""
        return self._consumed.get(device, _NOTHING)

    def version(self, pool: tuple[str, str]) -> int:
        """Grows whenever somebody takes or gives back a device of the pool (driver, name)."""
        return self._versions[pool]

    def follow(self, claims: Mapping[str, ResourceClaim], pending: Iterable[PendingClaim]) -> None:
        """Bring it up to date with the claims there are, by key, and with those under way."""
        for key in [key for key in self._claims if key not in claims]:
            self._count(self._claims.pop(key).status.allocation, -1)
        for key, claim in claims.items():
            known = self._claims.get(key)
            if known is claim:
                continue
            if known is not None:
                self._count(known.status.allocation, -1)
            self._claims[key] = claim
            self._count(claim.status.allocation, 1)
        before, self._pending = self._pending, tuple(pending)
        for one in before:
            if one not in self._pending:
                self._count(one.allocation, -1)
        for one in self._pending:
            if one not in before:
                self._count(one.allocation, 1)

    def _count(self, allocation: AllocationResult | None, sign: int) -> None:
        for device, is_share, consumed in _holdings(allocation):
            self._versions[device[:2]] += 1
            (self._shares if is_share else self._whole)[device] += sign
            if is_share:
                amounts = self._consumed.setdefault(device, Counter())
                for name, amount in consumed:
                    amounts[name] += sign * amount


def _holdings(allocation: AllocationResult | None) -> Iterable[_Holding]:
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            consumed = tuple((name, quantity.nanos_or_0(amount)) for name, amount in result.consumed_capacity.items())
            yield (result.driver, result.pool, result.device), result.share_id is not None, consumed
