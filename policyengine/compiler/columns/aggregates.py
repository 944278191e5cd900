"""One value for each group of rows: counts, tests, sums, means, extremes; the scalar forms are `functions.numeric`'s.

A group's answer never depends on the order of its rows. Of nothing, sums, means and deviations are 0, extremes are
absent. Integer sums that do not fit 64 bits fail their group.
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


def size(members: Members) -> Column:
    """`.size()`."""
    return Column(members.sizes())


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
    """`.sum()` of ints and quantities."""
    sums, overflow = _whole_sums(members, column)
    faults = None if overflow is None else faults_where(overflow, Fault.OVERFLOW)
    return Column(sums, faults)


def _whole_sums(members: Members, column: Column) -> tuple[Array, Mask | None]:
    """Sums, and where they do not fit 64 bits (None: they all do)."""
    values, rows = column.values, len(members.groups)
    if rows == 0 or max(int(values.max()), -int(values.min())) * rows <= _EXACT:
        return np.bincount(members.groups, values, minlength=members.count).astype(np.int64), None
    low = np.bincount(members.groups, values & _LOW, minlength=members.count).astype(np.int64)
    high = np.bincount(members.groups, values >> 32, minlength=members.count).astype(np.int64)
    high += low >> 32
    overflow = (high < -(2**31)) | (high >= 2**31)
    return (np.where(overflow, 0, high) << 32) | (low & _LOW), overflow if overflow.any() else None


def sum_of_doubles(members: Members, column: Column) -> Column:
    """`.sum()` of doubles, exactly rounded."""
    return Column(_exact_sums(members, column.values))


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
        return sum_of_doubles if element.kind is Kind.DOUBLE else sum_of_whole
    return _BY_KIND[function, element.kind in (Kind.DOUBLE, Kind.INT)]


def with_group_faults(column: Column, members: Members, faults: Faults | None) -> Column:
    """The groups' column, failing where one of a group's rows failed before it was asked."""
    of_groups = first_fault(members.faults(faults), column.faults)
    return Column(column.values, of_groups, column.present, column.dictionary)
