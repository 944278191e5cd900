"""The ResourceSlices of a cluster, by the nodes they are local to and by pool, kept up to date slice by slice.

Most nodes have devices of their own that look like their neighbours'. What a search on such a node comes to follows
from how the devices look, so it is made once for all nodes that look alike (`DeviceSlice.look`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from functools import lru_cache
from itertools import count
from typing import Final, TypeVar

import msgspec

from policyengine.cluster.device_objects import Device, DeviceAttribute, ResourceSlice, ResourceSliceSpec

K = TypeVar("K", bound=Hashable)
PoolID = tuple[str, str]
"""Driver, pool."""
_encode = msgspec.msgpack.Encoder().encode
_LOOKS: Final = 1 << 14
_numbers = count(1)


@lru_cache(maxsize=_LOOKS)
def _number_of(what: object) -> int:
    """The same number for what is equal, and no other's; again another one where it was forgotten meanwhile."""
    return next(_numbers)


class DeviceSlice:
    """One version of a slice."""

    def __init__(self, source: ResourceSlice, members: Mapping[str, DeviceSlice]) -> None:
        """`members`: the slices of its pool, by name; it becomes one of them."""
        spec = source.spec
        self.source = source
        self.name = source.metadata.name
        self.number = next(_numbers)
        """Another one for every slice and version."""
        self.pool: PoolID = (spec.driver, spec.pool.name)
        self.members = members
        self.draws = any(device.consumes_counters for device in spec.devices)
        """Whether a device of it draws on counters."""
        self.is_slow = any(device.binding_conditions for device in spec.devices)
        """Whether a device of it has binding conditions."""
        self.is_plain = not self.draws and _is_plain(spec)
        """Whether a search sees nothing of it but the looks of its devices, if it is alone in its pool."""
        self.shape = _number_of(_encode((spec.driver, [_shape(d) for d in spec.devices]))) if self.is_plain else 0
        """Equal for slices whose devices differ at most in their names and in values of attributes."""
        self._looks: dict[tuple[str, ...], int] = {}

    @property
    def spec(self) -> ResourceSliceSpec:
        """As written."""
        return self.source.spec

    @property
    def local_to(self) -> str:
        """The one node that the slice can matter to; "" where there may be others."""
        return "" if self.spec.shared_counters else self.spec.node_name or ""

    def look(self, attributes: tuple[str, ...]) -> int:
        """Equal for slices of one shape whose devices have equal values of these attributes, named as devices name
        them."""
        known = self._looks.get(attributes)
        if known is None:
            values = tuple([one.attributes.get(name) for one in self.spec.devices for name in attributes])
            known = self._looks[attributes] = _number_of(values)
        return known


def _is_plain(spec: ResourceSliceSpec) -> bool:
    return (
        bool(spec.node_name)
        and spec.pool.resource_slice_count == 1
        and not spec.shared_counters
        and not spec.per_device_node_selection
        and len({device.name for device in spec.devices}) == len(spec.devices)
    )


def _shape(device: Device) -> object:
    return model(device), device.taints, device.binds_to_node, device.binding_conditions


def model(device: Device) -> object:
    """All that a selector sees of a device but its driver and the values of attributes. Versions count: a malformed one
    is always an error."""
    kinds = [(name, one.version_value, one == DeviceAttribute()) for name, one in device.attributes.items()]
    return device.allow_multiple_allocations, kinds, device.capacity


class DeviceSlices:
    """All slices."""

    def __init__(self) -> None:
        self._by_name: dict[str, DeviceSlice] = {}
        self._local: dict[str, dict[str, DeviceSlice]] = {}
        self._shared: dict[str, DeviceSlice] = {}
        self._pools: dict[PoolID, dict[str, DeviceSlice]] = {}

    def observe(self, source: ResourceSlice) -> None:
        """A slice came, or changed."""
        self.drop(source.metadata.name)
        members = self._pools.setdefault((source.spec.driver, source.spec.pool.name), {})
        one = DeviceSlice(source, members)
        self._by_name[one.name] = members[one.name] = one
        self._place(one)[one.name] = one

    def drop(self, name: str) -> None:
        """A slice is gone; an unknown one is no change."""
        one = self._by_name.pop(name, None)
        if one is None:
            return
        _take_out(self._pools, one.pool, name)
        if one.local_to:
            _take_out(self._local, one.local_to, name)
        else:
            del self._shared[name]

    def _place(self, one: DeviceSlice) -> dict[str, DeviceSlice]:
        return self._local.setdefault(one.local_to, {}) if one.local_to else self._shared

    def get(self, name: str) -> DeviceSlice | None:
        """The slice as it is now."""
        return self._by_name.get(name)

    def local(self, node: str) -> Mapping[str, DeviceSlice]:
        """The slices that matter to the node and to no other."""
        return self._local.get(node, {})

    @property
    def shared(self) -> Collection[DeviceSlice]:
        """The slices that may matter to several nodes."""
        return self._shared.values()


def _take_out(places: dict[K, dict[str, DeviceSlice]], key: K, name: str) -> None:
    members = places[key]
    del members[name]
    if not members:
        del places[key]
