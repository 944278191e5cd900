"""Lists of nodes or pods: where their elements stand, to which asked node each belongs, one value of each group.

`pods` and `nodes` are one group; `node.pods` and `node.nominated` one for each asked node; a domain's lists one for
each value of the label. Nothing here goes through nodes or pods one by one, but for the few of a few rows.

A group's answer (count, test, sum, mean, extreme; the scalar forms are `functions.numeric`'s) never depends on the
order of its rows. Of nothing, sums, means and deviations are 0, extremes are absent. Integer sums that do not fit 64
bits fail their group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.compiler.columns import arithmetic_kernels
from policyengine.compiler.columns.column import (
    INT64_MAX,
    Array,
    Column,
    Fault,
    Faults,
    Mask,
    faults_where,
    first_fault,
)
from policyengine.compiler.columns.frame import Frame, PodFrame, Vector
from policyengine.language.functions.numeric import total
from policyengine.language.types import Kind, Type

Groups = NDArray[np.int64]
_EXACT: Final = 2**53
_LOW: Final = np.int64(2**32 - 1)
_NO_FAULT: Final = 255


@dataclass(frozen=True, slots=True)
class Members:
    """The rows that count, and the group of each, below `count`."""

    groups: Groups
    count: int

    def sizes(self) -> NDArray[np.int64]:
        """How many rows each group has."""
        return np.bincount(self.groups, minlength=self.count)

    def any(self, rows: Mask) -> Mask:
        """The groups with at least one of `rows`, a `bool` for each row."""
        found = np.zeros(self.count, np.bool_)
        found[self.groups[rows]] = True
        return found

    def faults(self, faults: Faults | None) -> Faults | None:
        """A fault of each group: of those its rows have the one with the least number; None where no row failed."""
        if faults is None or not faults.any():
            return None
        failed = faults != 0
        least: Faults = np.full(self.count, _NO_FAULT, np.uint8)
        np.minimum.at(least, self.groups[failed], faults[failed])
        least[least == _NO_FAULT] = 0
        return least


def exists(members: Members, tests: Column) -> Column:
    """`.exists(x, e)`: an error counts only where no row is true."""
    return _absorbing(members, tests, True)


def for_all(members: Members, tests: Column) -> Column:
    """`.all(x, e)`: an error counts only where no row is false."""
    return _absorbing(members, tests, False)


def _absorbing(members: Members, tests: Column, decisive: bool) -> Column:
    says = tests.values if decisive else ~tests.values
    if tests.faults is not None:
        says = says & (tests.faults == 0)
    decided = members.any(says)
    faults = members.faults(tests.faults)
    if faults is not None:
        faults = np.where(decided, np.uint8(0), faults)
    return Column(decided if decisive else ~decided, faults)


def exists_one(members: Members, tests: Column) -> Column:
    """`.exists_one(x, e)`: any error is one."""
    hits = np.bincount(members.groups[tests.values], minlength=members.count)
    return Column(hits == 1, members.faults(tests.faults))


Aggregate = Callable[[Members, Column], Column]


def sum_of_whole(members: Members, column: Column) -> Column:
    """`.sum()` of ints and quantities; fails where it does not fit 64 bits."""
    values, rows = column.values, len(members.groups)
    if rows == 0 or max(int(values.max()), -int(values.min())) * rows <= _EXACT:
        return Column(np.bincount(members.groups, values, minlength=members.count).astype(np.int64))
    low = np.bincount(members.groups, values & _LOW, minlength=members.count).astype(np.int64)
    high = np.bincount(members.groups, values >> 32, minlength=members.count).astype(np.int64)
    high += low >> 32
    overflow = (high < -(2**31)) | (high >= 2**31)
    sums = (np.where(overflow, 0, high) << 32) | (low & _LOW)
    return Column(sums, faults_where(overflow, Fault.OVERFLOW))


def _exact_sums(members: Members, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exactly rounded sum of each group, whatever the order of its rows."""
    order = np.argsort(members.groups, kind="stable")
    ends = np.searchsorted(members.groups[order], np.arange(members.count + 1)).tolist()
    listed = values[order].tolist()
    return np.array([total(listed[start:end]) for start, end in pairwise(ends)], np.float64)


def _means(members: Members, values: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes = members.sizes()
    return np.where(sizes > 0, _exact_sums(members, values) / np.maximum(sizes, 1), 0.0)


def _deviations(members: Members, values: NDArray[np.float64]) -> NDArray[np.float64]:
    apart = values - _means(members, values)[members.groups]
    return np.sqrt(_means(members, apart * apart))


def _of_doubles(compute: Callable[[Members, NDArray[np.float64]], NDArray[np.float64]]) -> Aggregate:
    return lambda members, column: Column(compute(members, column.values.astype(np.float64)))


def _to_grain(compute: Callable[[Members, NDArray[np.float64]], NDArray[np.float64]]) -> Aggregate:
    """Of quantities: rounded to the grain, half to even."""
    return lambda members, column: arithmetic_kernels.to_grain(compute(members, column.values.astype(np.float64)))


def _extreme(pick: np.ufunc, whole: int) -> Aggregate:
    """`.min()`, `.max()`; NaN where a row is, and no negative zero."""

    def aggregate(members: Members, column: Column) -> Column:
        doubles = column.values.dtype == np.float64
        values = column.values + 0.0 if doubles else column.values
        start = np.inf * whole if doubles else (INT64_MAX if whole > 0 else -INT64_MAX - 1)
        best: Array = np.full(members.count, start, values.dtype)
        pick.at(best, members.groups, values)
        there = members.sizes() > 0
        best[~there] = 0
        return Column(best, present=None if there.all() else there)

    return aggregate


_ANY_NUMBER: dict[str, Aggregate] = {"min": _extreme(np.minimum, 1), "max": _extreme(np.maximum, -1)}
_BY_KIND: dict[tuple[str, bool], Aggregate] = {
    ("avg", True): _of_doubles(_means),
    ("stddev", True): _of_doubles(_deviations),
    ("avg", False): _to_grain(_means),
    ("stddev", False): _to_grain(_deviations),
}


def aggregate_of(function: str, element: Type) -> Aggregate:
    """How `sum avg min max stddev` are computed for elements of a type."""
    if function in _ANY_NUMBER:
        return _ANY_NUMBER[function]
    if function == "sum":
        return _of_doubles(_exact_sums) if element.kind is Kind.DOUBLE else sum_of_whole
    return _BY_KIND[function, element.kind in (Kind.DOUBLE, Kind.INT)]


def with_group_faults(column: Column, members: Members, faults: Faults | None) -> Column:
    """The groups' column, failing where one of a group's rows failed before it was asked."""
    of_groups = first_fault(members.faults(faults), column.faults)
    return Column(column.values, of_groups, column.present, column.dictionary)


Rows = NDArray[np.int64]
FEW: Final = 32
"""Of so few nodes the pods are looked up one by one: less work than going through all pods there are."""


@dataclass(frozen=True, slots=True)
class Found:
    """The elements, and the group of each; `spread` brings what holds for groups to the asked rows."""

    elements: Frame
    groups: Groups
    count: int
    index: Rows | None = None
    """The group of each asked row; None: the groups are the asked rows in order, or there is but one."""
    faults: Faults | None = None
    """Asked rows without a group."""
    is_single: bool = False

    @property
    def members(self) -> Members:
        """All elements."""
        return Members(self.groups, self.count)

    def spread(self, column: Column) -> Column:
        """A column of groups as one of the asked rows."""
        if self.is_single:
            return _first(column)
        return (column if self.index is None else column.take(self.index)).with_faults(self.faults)


def _first(column: Column) -> Column:
    """The one row of a column as a column of one value."""
    return Column(
        column.values[0],
        None if column.faults is None or not column.faults[0] else column.faults[0],
        None if column.present is None or column.present[0] else column.present[0],
        column.dictionary,
    )


Locate = Callable[[Frame], Found]


def all_pods(frame: Frame) -> Found:
    """`pods`."""
    pods = frame.nodes.pod_table.current()
    elements = PodFrame(frame.nodes, None, frame.hoisted, pods)
    return Found(elements, np.zeros(pods.n, np.int64), 1, is_single=True)


def all_nodes(frame: Frame) -> Found:
    """`nodes`."""
    nodes = frame.nodes
    return Found(Frame(nodes, None, frame.hoisted), np.zeros(nodes.n, np.int64), 1, is_single=True)


def node_pods(frame: Frame) -> Found:
    """`node.pods`."""
    pods = frame.nodes.pod_table.current()
    if frame.rows is not None and len(frame.rows) <= FEW:
        standing = [frame.nodes.pods_on(row) for row in frame.rows.tolist()]
        places = pods.places(uid for there in standing for uid in there)
        owners = np.repeat(np.arange(frame.count), [len(there) for there in standing])
    else:
        places, owners = _of_asked(frame, np.arange(pods.n), pods.rows.astype(np.int64))
    return Found(PodFrame(frame.nodes, places, frame.hoisted, pods, frame, owners), owners, frame.count)


def _of_asked(frame: Frame, places: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """Those of `places` whose row is asked for, and where it stands among the asked ones."""
    if frame.rows is None:
        positions = rows
    else:
        position = np.full(frame.nodes.n + 1, -1, np.int64)  # the last entry is that of row -1
        position[frame.rows] = np.arange(frame.count)
        positions = position[rows]
    asked = np.flatnonzero(positions >= 0)
    return places[asked], positions[asked]


def nominated_pods(itself: Vector) -> Locate:
    """`node.nominated`; `itself` says the UID of the pod being placed, where that one is nominated."""

    def locate(frame: Frame) -> Found:
        pods = frame.nodes.pod_table.current()
        places, owners = _of_asked(frame, *pods.nominated())
        own = itself(frame)
        assert own.dictionary is not None
        uid = own.dictionary[int(own.values)]
        others = np.array([pods.infos[place].uid != uid for place in places.tolist()], np.bool_)
        places, owners = places[others], owners[others]
        return Found(PodFrame(frame.nodes, places, frame.hoisted, pods, frame, owners), owners, frame.count)

    return locate


@dataclass(frozen=True, slots=True)
class _Domains:
    """The values of a label: `ids` of all nodes, which of the values are asked for, and the asked rows' own."""

    ids: Rows
    wanted: Mask
    index: Rows
    faults: Faults | None

    @property
    def rows(self) -> Mask:
        """The nodes in a wanted domain."""
        return self.wanted[self.ids]


def _domains(frame: Frame, key: Column) -> _Domains:
    nodes = frame.nodes
    if key.faults is not None or key.dictionary is None:
        no_id = np.full(nodes.n, 0, np.int64)
        faults = np.broadcast_to(np.uint8(Fault.FAILED) if key.faults is None else key.faults, (frame.count,))
        return _Domains(no_id, np.zeros(1, np.bool_), frame.pick(no_id), faults)
    label = key.dictionary[int(key.values)]
    # The last domain is that of the nodes without the label: nobody asks for it.
    without = len(nodes.label_values(label))
    ids = nodes.label_ids(label).astype(np.int64)
    ids = np.where(ids < 0, without, ids)
    index = frame.pick(ids)
    wanted = np.zeros(without + 1, np.bool_)
    wanted[index] = True
    wanted[without] = False
    return _Domains(ids, wanted, index, faults_where(index == without, Fault.NO_DOMAIN))


def domain_pods(key: Vector) -> Locate:
    """`node.domain(key).pods`."""

    def locate(frame: Frame) -> Found:
        pods, domains = frame.nodes.pod_table.current(), _domains(frame, key(frame))
        rows = np.append(domains.rows, False)  # the last entry is that of pods without a node
        places = np.flatnonzero(rows[pods.rows])
        groups = domains.ids[pods.rows[places]]
        elements = PodFrame(frame.nodes, places, frame.hoisted, pods)
        return Found(elements, groups, len(domains.wanted), domains.index, domains.faults)

    return locate


def domain_nodes(key: Vector) -> Locate:
    """`node.domain(key).nodes`."""

    def locate(frame: Frame) -> Found:
        domains = _domains(frame, key(frame))
        rows = np.flatnonzero(domains.rows)
        elements = Frame(frame.nodes, rows, frame.hoisted)
        return Found(elements, domains.ids[rows], len(domains.wanted), domains.index, domains.faults)

    return locate
