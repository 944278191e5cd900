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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

from policyengine import quantity
from policyengine.cluster.device_objects import AllocationResult, Device, ResourceClaim, ResourceSliceSpec
from policyengine.cluster.device_slices import DeviceSlice, DeviceSlices, PoolID
from policyengine.cluster.node_objects import Node, NodeSelector
from policyengine.plugins.devices.device import Counters, DeviceID, SliceDevice
from policyengine.plugins.selectors.node_selector import Selector, compile_selector


class Slice:
    """A slice with its devices, which are made when a search first looks at one; once for each version."""

    def __init__(self, source: DeviceSlice) -> None:
        self.source = source
        self.pool = source.pool
        self._devices: tuple[SliceDevice, ...] | None = None
        is_each = source.spec.per_device_node_selection
        self._each = tuple([_reach(device) for device in source.spec.devices]) if is_each else ()

    @property
    def spec(self) -> ResourceSliceSpec:
        """As written."""
        return self.source.spec

    @property
    def devices(self) -> tuple[SliceDevice, ...]:
        """In the order written."""
        if self._devices is None:
            self._devices = tuple([SliceDevice(*self.pool, device) for device in self.spec.devices])
        return self._devices

    def reach_of_each(self, node: Node) -> tuple[bool, ...]:
        """Whether the node reaches the first device, the second, …, of a slice that says so device by device."""
        return tuple([reaches(node) for reaches in self._each])

    def reached(self, node: Node) -> Iterator[SliceDevice]:
        """The devices that the node reaches, given that it reaches the slice."""
        return compress(self.devices, self.reach_of_each(node)) if self._each else iter(self.devices)


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

    @property
    def may_lose_counters(self) -> bool:
        """Whether a device draws on them that is shared or tainted."""
        return any(one.device.allow_multiple_allocations or one.device.taints for one in self.devices if one.draws)


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """What some nodes reach."""

    pools: tuple[Pool, ...]
    """In the order in which they are tried."""
    drawn_from: frozenset[PoolID]
    """All of them, those included that are passed over."""


@dataclass(slots=True, eq=False)
class _Group:
    """Slices that the nodes of a selector reach; None: all nodes."""

    number: int
    selector: Selector | None
    whole: list[Slice] = field(default_factory=list)
    each: list[Slice] = field(default_factory=list)
    """Of these every device says for itself which nodes reach it."""


class Pools:
    """The pools that nodes reach, as the slices are now."""

    def __init__(self, slices: DeviceSlices) -> None:
        self._slices = slices
        self._made: dict[str, Slice] = {}
        self._groups: list[_Group] | None = None
        self._reached: dict[Hashable, Reached] = {}

    def forget(self) -> None:
        """A slice came, changed or went."""
        self._groups = None
        self._reached.clear()
        self._made = {name: made for name, made in self._made.items() if self._slices.get(name) is made.source}

    def alike(self, node: Node) -> Sequence[DeviceSlice] | None:
        """The node's slices in the order in which they are tried, where a search sees nothing of them but how they
        look; else None."""
        if self._slices.shared:
            return None
        local = self._slices.local(node.metadata.name)
        for one in local.values():
            if not one.is_plain or len(one.members) > 1:
                return None
        return (
            list(local.values()) if len(local) < 2 else sorted(local.values(), key=lambda one: (one.is_slow, one.pool))
        )

    def reached(self, node: Node) -> Reached:
        """What the node reaches; the same object for nodes that reach the same devices."""
        local = self._slices.local(node.metadata.name).values()
        if self._groups is None:
            self._groups = self._grouped()
        near = [group for group in self._groups if group.selector is None or group.selector.matches(node)]
        each = [(one, one.reach_of_each(node)) for group in near for one in group.each]
        key = (
            tuple([one.number for one in local]),
            tuple([group.number for group in near]),
            tuple([flags for _, flags in each]),
        )
        found = self._reached.get(key)
        if found is None:
            slices = [self._slice(one) for one in local]
            slices += [one for group in near for one in group.whole]
            slices += [one for one, flags in each if any(flags)]
            found = self._reached[key] = Reached(self._gather(slices), frozenset([one.pool for one in slices]))
        return found

    def _grouped(self) -> list[_Group]:
        """The slices that are local to no node, those together that the same nodes reach."""
        groups: dict[NodeSelector | None, _Group] = {}
        for source in self._slices.shared:
            spec = source.spec
            everywhere = bool(spec.shared_counters) or spec.all_nodes
            if not everywhere and spec.node_selector is None and not spec.per_device_node_selection:
                continue  # of a kind that is not known here
            selector = None if everywhere else spec.node_selector
            compiled = None if selector is None else compile_selector(selector)
            group = groups.setdefault(selector, _Group(len(groups), compiled))
            is_each = spec.per_device_node_selection and not spec.shared_counters
            (group.each if is_each else group.whole).append(self._slice(source))
        return list(groups.values())

    def _slice(self, source: DeviceSlice) -> Slice:
        made = self._made.get(source.name)
        if made is None or made.source is not source:
            made = self._made[source.name] = Slice(source)
        return made

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
    names = [device.name for one in targeting for device in one.spec.devices]
    if len(set(names)) != len(names):
        return Pool(pool, invalid=True)
    counters = _counters(members)
    devices = tuple(device for one in everyone if one.source.draws for device in one.devices)
    if counters is None or any(key not in counters for device in devices for key in device.draws):
        return Pool(pool, invalid=True)
    return Pool(pool, targeting, counters=counters, devices=devices)


def _place(pool: Pool) -> tuple[bool, PoolID]:
    return any(one.source.is_slow for one in pool.slices), pool.id


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


def _reach(device: Device) -> Callable[[Node], bool]:
    """Whether a node reaches the device."""
    if device.node_name:
        return lambda node: node.metadata.name == device.node_name
    if device.all_nodes or device.node_selector is None:
        return lambda node: device.all_nodes
    return compile_selector(device.node_selector).matches


_NOTHING: Mapping[str, int] = {}
_Holding = tuple[DeviceID, bool, tuple[tuple[str, int], ...]]
"""Device, whether it is a share, and what the share consumes."""


class Taken:
    """Who holds what, as the claims seen last, and the reservations, say."""

    def __init__(self) -> None:
        self._claims: dict[str, ResourceClaim] = {}
        self._pending: tuple[AllocationResult, ...] = ()
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

    def follow(self, claims: Mapping[str, ResourceClaim], pending: tuple[AllocationResult, ...]) -> None:
        """Bring it up to date with the claims there are, by key, and with the allocations under way."""
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
        before, self._pending = self._pending, pending
        for one in before:
            if not any(one is other for other in pending):
                self._count(one, -1)
        for one in pending:
            if not any(one is other for other in before):
                self._count(one, 1)

    def _count(self, allocation: AllocationResult | None, sign: int) -> None:
        for device, is_share, consumed in _holdings(allocation):
            self._versions[device[:2]] += 1
            held = self._shares if is_share else self._whole
            held[device] += sign
            if not held[device]:
                del held[device]
            if is_share:
                amounts = self._consumed.setdefault(device, Counter())
                for name, amount in consumed:
                    amounts[name] += sign * amount


def _holdings(allocation: AllocationResult | None) -> Iterable[_Holding]:
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            consumed = tuple((name, quantity.nanos_or_0(amount)) for name, amount in result.consumed_capacity.items())
            yield (result.driver, result.pool, result.device), result.share_id is not None, consumed
