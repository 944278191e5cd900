"""The columns of the node table, and how they grow and move: storage and accessors, no meaning of events.

Columns handed out are views of `[:n]`: read-only by convention, stale after the next change.

An inverted index says which rows have an image: asked by name, kept up to date by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.derived import DerivedColumns
from policyengine.cluster.journal import grown
from policyengine.cluster.node_objects import ContainerImage, Node
from policyengine.cluster.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY

_NOBODY: Mapping[int, int] = MappingProxyType({})


class ImageIndex:
    """Image name -> row -> size in bytes. Of several sizes under one name on one node the first counts."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[int, int]] = {}
        self._pool: dict[ContainerImage, ContainerImage] = {}

    def add(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Enter a row's images."""
        for image in images:
            for name in image.names:
                self._sizes.setdefault(name, {}).setdefault(row, image.size_bytes)

    def remove(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Take a row's images out."""
        for image in images:
            for name in image.names:
                holders = self._sizes.get(name)
                if holders is not None:
                    holders.pop(row, None)
                    if not holders:
                        del self._sizes[name]

    def shared(self, images: tuple[ContainerImage, ...]) -> tuple[ContainerImage, ...]:
        """The same images as objects shared by all nodes that have them."""
        if len(self._pool) > 1 << 15:
            self._pool.clear()
        return tuple(self._pool.setdefault(image, image) for image in images)

    def sizes(self, name: str, rows: int) -> NDArray[np.int64]:
        """The image's size on each node, 0 where it is not: `int64[rows]`."""
        column = np.zeros(rows, dtype=np.int64)
        holders = self._sizes.get(name)
        if holders:
            where = np.fromiter(holders.keys(), dtype=np.int64, count=len(holders))
            column[where] = np.fromiter(holders.values(), dtype=np.int64, count=len(holders))
        return column

    def holders(self, name: str) -> Mapping[int, int]:
        """Row -> size, for the nodes that have the image."""
        return self._sizes.get(name, _NOBODY)


Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
_EVERYWHERE = (CPU, MEMORY, EPHEMERAL_STORAGE)
_FIXED = ("_name_hash", "_allowed_pods", "_pod_count", "_unschedulable", "_ready", "_created_at")


class Offer(NamedTuple):
    """What the nodes offer of some resources, for arithmetic on whole columns."""

    amounts: Float64
    """`float64[resources, n]`, 1 instead of 0, which nothing can be divided by."""
    is_offered: Bool | None
    """`bool[resources, n]`; None if all nodes offer all of them."""
    is_exact: bool
    """Whether 100 of each amount is below 2**53: then it is exact as a double, and the floor of a quotient by it is the
    floor of the exact one. Were x/y just below an integer k, the gap is at least 1/y > k/2**53, more than half a unit
    in the last place, and rounding cannot reach k."""


class NodeColumns:
    """One value a node in each column; rows 0..n-1 are in use."""

    def __init__(self) -> None:
        self.n = 0
        """The number of nodes, and of rows."""
        self.objects: list[Node] = []
        self._room = 0
        self._name_hash = np.zeros(0, np.uint64)
        self._allowed_pods: Int64 = np.zeros(0, np.int64)
        self._pod_count: Int64 = np.zeros(0, np.int64)
        self._unschedulable: Bool = np.zeros(0, np.bool_)
        self._ready: Bool = np.zeros(0, np.bool_)
        self._created_at = np.zeros(0, np.float64)
        self._allocatable: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in _EVERYWHERE}
        self._free: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in _EVERYWHERE}
        self._nowhere: dict[str, dict[int, int]] = {}
        """What the pods on nodes ask for and no node has ever offered: resource -> row -> amount. Whoever makes pods
        may think of any number of these: they have no column."""
        self._free_with_defaults: dict[str, Int64] = {name: np.zeros(0, np.int64) for name in (CPU, MEMORY)}
        self._offers: dict[tuple[str, ...], Offer] = {}
        """Emptied whenever an allocatable amount may have changed."""
        self.derived = DerivedColumns(self.objects)

    @property
    def resources(self) -> list[str]:
        """Every resource that a node has offered: cpu, memory, ephemeral-storage, then in order of arrival; then those
        that are only asked for."""
        return [*self._free, *self._nowhere]

    @property
    def name_hash(self) -> NDArray[np.uint64]:
        """`stable_hash` of what each name is `known_as`: `uint64[n]`."""
        return self._name_hash[: self.n]

    @property
    def allowed_pods(self) -> Int64:
        """How many pods a node takes: `int64[n]`."""
        return self._allowed_pods[: self.n]

    @property
    def pod_count(self) -> Int64:
        """How many pods are on it: `int64[n]`."""
        return self._pod_count[: self.n]

    @property
    def unschedulable(self) -> Bool:
        """Cordoned: `bool[n]`."""
        return self._unschedulable[: self.n]

    @property
    def ready(self) -> Bool:
        """Condition Ready is True: `bool[n]`."""
        return self._ready[: self.n]

    @property
    def created_at(self) -> NDArray[np.float64]:
        """Seconds since the epoch, 0.0 where unknown: `float64[n]`."""
        return self._created_at[: self.n]

    def allocatable(self, resource: str) -> Int64:
        """The nodes' allocatable, millicores for cpu, else whole units: `int64[n]`; zeros for an unknown resource."""
        column = self._allocatable.get(resource)
        return np.zeros(self.n, np.int64) if column is None else column[: self.n]

    def is_known(self, resource: str) -> bool:
        """False if no node has offered the resource: then `allocatable` is 0 throughout."""
        return resource in self._free

    def offer(self, resources: tuple[str, ...]) -> Offer:
        """`allocatable` of the resources, worked out once for all pods until a node changes."""
        offer = self._offers.get(resources)
        if offer is None:
            amounts = np.array([self.allocatable(resource) for resource in resources]).reshape(len(resources), self.n)
            is_offered = None if amounts.all() else amounts > 0
            is_exact = not (amounts >= 2**53 // 100).any()
            offer = Offer(np.maximum(amounts, 1).astype(np.float64), is_offered, is_exact)
            self._offers[resources] = offer
        return offer

    def requested(self, resource: str) -> Int64:
        """What the pods on each node ask for, in the same units: `int64[n]`."""
        return self.allocatable(resource) - self.free(resource)

    def free(self, resource: str, with_defaults: bool = False) -> Int64:
        """`allocatable` minus `requested`, below 0 where more is asked for: `int64[n]`. With defaults, a container
        without a request for cpu or memory counts as 100 millicores or 200Mi."""
        column = self._free_with_defaults.get(resource) if with_defaults else None
        column = self._free.get(resource) if column is None else column
        if column is not None:
            return column[: self.n]
        column = np.zeros(self.n, np.int64)
        for row, amount in self._nowhere.get(resource, _NOBODY).items():
            column[row] = -amount
        return column

    def is_full(self, row: int) -> bool:
        """Whether no further pod is allowed on a node."""
        return self._pod_count.item(row) >= self._allowed_pods.item(row)

    def room(self, resource: str, row: int, with_defaults: bool = False) -> tuple[int, int]:
        """(`allocatable`, `free`) of one node: for few rows faster than the columns."""
        free = self._free_with_defaults.get(resource) if with_defaults else None
        free = self._free.get(resource) if free is None else free
        if free is None:
            return 0, -self._nowhere.get(resource, _NOBODY).get(row, 0)
        return self._allocatable[resource].item(row), free.item(row)

    def label_ids(self, key: str) -> NDArray[np.int32]:
        """The label's value on each node as an index into `label_values(key)`, -1 absent: `int32[n]`."""
        return self.derived.ids("label", key)

    def has_label(self, key: str) -> bool:
        """False if no node has the label; `label_ids` is -1 throughout then."""
        return self.derived.has("label", key)

    def label_values(self, key: str) -> list[str]:
        """The label's values by id."""
        return self.derived.values("label", key)

    def _copy_row(self, source: int, target: int) -> None:
        for name in _FIXED:
            column = getattr(self, name)
            column[target] = column[source]
        for amounts in self._amounts():
            amounts[target] = amounts[source]
        for asked in self._nowhere.values():
            asked.pop(target, None)
            if source in asked:
                asked[target] = asked[source]

    def _clear(self, row: int) -> None:
        """Make a row ready for the next node to come."""
        self._offers.clear()
        for name in _FIXED:
            getattr(self, name)[row] = 0
        for amounts in self._amounts():
            amounts[row] = 0
        for asked in self._nowhere.values():
            asked.pop(row, None)
        self._nowhere = {resource: asked for resource, asked in self._nowhere.items() if asked}

    def _amounts(self) -> Iterator[Int64]:
        for columns in (self._allocatable, self._free, self._free_with_defaults):
            yield from columns.values()

    def _know(self, resource: str) -> None:
        """Have columns for a resource that a node offers."""
        if resource not in self._free:
            self._allocatable[resource] = np.zeros(self._room, np.int64)
            self._free[resource] = np.zeros(self._room, np.int64)
            for row, amount in self._nowhere.pop(resource, _NOBODY).items():
                self._free[resource][row] = -amount

    def _take(self, resource: str, row: int, amount: int) -> None:
        """Count what a pod asks for, or gives back where it is below 0."""
        column = self._free.get(resource)
        if column is not None:
            column[row] -= amount
            return
        asked = self._nowhere.setdefault(resource, {})
        left = asked.get(row, 0) + amount
        if left:
            asked[row] = left
            return
        asked.pop(row, None)
        if not asked:
            del self._nowhere[resource]

    def _grow(self, size: int) -> None:
        for name in _FIXED:
            setattr(self, name, grown(getattr(self, name), size))
        for columns in (self._allocatable, self._free, self._free_with_defaults):
            for resource, column in columns.items():
                columns[resource] = np.asarray(grown(column, size), dtype=np.int64)
        self._room = len(self._pod_count)
