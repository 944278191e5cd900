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
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from policyengine import quantity
from policyengine.cluster.device_objects import (
    AllocationResult,
    Device,
    ResourceClaim,
    ResourceSliceSpec,
)
from policyengine.cluster.device_slices import DeviceSlice, DeviceSlices, PoolID
from policyengine.cluster.node_objects import Node, NodeSelector
from policyengine.cluster.object_store import PendingClaim
from policyengine.plugins.devices.device import Counters, DeviceID, SliceDevice
from policyengine.plugins.selectors.node_selector import Selector, compile_selector


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
    """A slice with its devices; made once for each version of a `ResourceSlice`, when a search first looks at it."""

    __slots__ = ("_each", "_reach", "devices", "number", "pool", "source")

    def __init__(self, source: DeviceSlice) -> None:
        spec = source.spec
        self.source = source
        self.number = source.number
        self.pool = source.pool
        self.devices = tuple([SliceDevice(*source.pool, device) for device in spec.devices])
        self._reach = _reach(spec)
        self._each = {d.id: _reach(d.device) for d in self.devices} if spec.per_device_node_selection else {}

    @property
    def spec(self) -> ResourceSliceSpec:
        """As written."""
        return self.source.spec

    def matters_to(self, node: Node) -> bool:
        """Whether the node reaches a device of it, or needs its counters."""
        if self.spec.shared_counters:
            return True
        if self._reach.node_name or self._reach.all_nodes or self._reach.selector is not None:
            return self._reach.holds(node)
        return any(reach.holds(node) for reach in self._each.values())

    def reaches(self, device: SliceDevice, node: Node) -> bool:
        """Whether the node reaches the device, given that the slice matters to it."""
        return not self._each or self._each[device.id].holds(node)


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
    """The pools that nodes reach, as the slices are now."""

    def __init__(self, slices: DeviceSlices) -> None:
        self._slices = slices
        self._made: WeakKeyDictionary[DeviceSlice, Slice] = WeakKeyDictionary()
        self._gathered: dict[tuple[int, ...], tuple[Pool, ...]] = {}

    def forget(self) -> None:
        """A slice came, changed or went."""
        self._gathered.clear()

    def alike(self, node: Node) -> Sequence[DeviceSlice] | None:
        """The node's slices in the order in which they are tried, where a search sees nothing of them but how they
        look; else None."""
        if self._slices.shared:
            return None
        local = self._slices.local(node.metadata.name)
        for one in local.values():
            if not one.is_plain or len(one.members) > 1:
                return None
        return list(local.values()) if len(local) < 2 else sorted(local.values(), key=_plain_place)

    def slices_of(self, node: Node) -> tuple[Slice, ...]:
        """The slices that matter to a node."""
        local = tuple([self._slice(one) for one in self._slices.local(node.metadata.name).values()])
        shared = (self._slice(one) for one in self._slices.shared)
        return (*local, *(one for one in shared if one.matters_to(node)))

    def _slice(self, source: DeviceSlice) -> Slice:
        made = self._made.get(source)
        if made is None:
            made = self._made[source] = Slice(source)
        return made

    def situation(self, node: Node, slices: tuple[Slice, ...]) -> tuple[int, ...]:
        """Equal for nodes that reach the same devices, `slices` being those that matter to the node."""
        numbers = [one.number for one in slices]
        for one in slices:
            if one.spec.per_device_node_selection:
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
        built = (self._pool(pool, members) for pool, members in newest.items())
        return tuple(sorted((pool for pool in built if pool is not None), key=_place))

    def _pool(self, pool: PoolID, members: list[Slice]) -> Pool | None:
        generation, expected = members[0].spec.pool.generation, members[0].spec.pool.resource_slice_count
        everyone = members
        if len(members) != expected:
            listed = members[0].source.members.values()
            if any(one.spec.pool.generation > generation for one in listed):
                return None
            everyone = [self._slice(one) for one in listed if one.spec.pool.generation == generation]
            if len(everyone) != expected:
                return Pool(pool, incomplete=True)
        return _built(pool, sorted(members, key=lambda one: one.source.name), everyone)


def _built(pool: PoolID, members: Sequence[Slice], everyone: Sequence[Slice]) -> Pool:
    targeting = tuple(one for one in members if not one.spec.shared_counters)
    names = [device.id for one in targeting for device in one.devices]
    if len(set(names)) != len(names):
        return Pool(pool, invalid=True)
    counters = _counters(members)
    devices = tuple(device for one in everyone for device in one.devices)
    if counters is None or any(key not in counters for device in devices for key in device.draws):
        return Pool(pool, invalid=True)
    return Pool(pool, targeting, counters=counters, devices=devices)


def _place(pool: Pool) -> tuple[bool, PoolID]:
    return any(device.device.binding_conditions for one in pool.slices for device in one.devices), pool.id


def _plain_place(one: DeviceSlice) -> tuple[bool, PoolID]:
    return any(device.binding_conditions for device in one.spec.devices), one.pool


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
        self._versions: Counter[PoolID] = Counter()
        self._of_slices: dict[PoolID, tuple[int, int, Hashable]] = {}

    def is_held(self, device: DeviceID) -> bool:
        """Whether a claim has the device for itself."""
        return self._whole[device] > 0

    def is_shared(self, device: DeviceID) -> bool:
        """Whether claims have shares of the device."""
        return self._shares[device] > 0

    def consumed(self, device: DeviceID) -> Mapping[str, int]:
        """What the shares of the device consume, in billionths."""
        return self._consumed.get(device, _NOTHING)

    def version(self, pool: PoolID) -> int:
        """Grows whenever somebody takes or gives back a device of the pool."""
        return self._versions[pool]

    def of_slice(self, one: DeviceSlice) -> Hashable:
        """Who holds what of the slice's devices: equal where the same is held of the first, the second, …"""
        version = self._versions.get(one.pool)
        if version is None:
            return None
        known = self._of_slices.get(one.pool)
        if known is None or known[:2] != (one.number, version):
            held = tuple([self._of_device((*one.pool, device.name)) for device in one.spec.devices])
            known = self._of_slices[one.pool] = (one.number, version, held if any(held) else None)
        return known[2]

    def _of_device(self, device: DeviceID) -> Hashable:
        whole, shares = self._whole[device] > 0, self._shares[device] > 0
        return (whole, shares, tuple(sorted(self.consumed(device).items()))) if whole or shares else None

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
