"""Comparison and equality over columns: exact between ints and doubles, once a dictionary entry for strings.

Every kernel is strict and answers a bool column; `NaN` is unequal to everything and on no side of anything.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from policyengine.compiler.columns.column import (
    INT64_MIN,
    Array,
    Column,
    Mask,
    compact,
    first_fault,
    recoded,
)
from policyengine.language.functions.comparison import equal
from policyengine.language.types import Kind, Type

Comparison = Callable[[Any, Any], Any]
ORDERINGS: dict[str, Comparison] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_TWO63 = 2.0**63


def ordering(function: str, left: Type, right: Type) -> Callable[[Column, Column], Column] | None:
    """The kernel of `< <= > >=` for operands of these types; None where columns have none."""
    compare = ORDERINGS[function]
    kinds = (left.kind, right.kind)
    if kinds == (Kind.INT, Kind.DOUBLE):
        return lambda a, b: Column(_int_against_double(function, a.values, b.values), _faults(a, b))
    if kinds == (Kind.DOUBLE, Kind.INT):
        mirrored = _MIRRORED[function]
        return lambda a, b: Column(_int_against_double(mirrored, b.values, a.values), _faults(a, b))
    if left.kind is not right.kind:
        return None
    if left.kind is Kind.STRING:
        return lambda a, b: _strings(compare, a, b)
    if left.kind in _PLAIN:
        return lambda a, b: Column(compare(a.values, b.values), _faults(a, b))
    return None


_MIRRORED = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_"}
_PLAIN = frozenset(
    {Kind.BOOL, Kind.INT, Kind.DOUBLE, Kind.CPU, Kind.MEMORY, Kind.STORAGE, Kind.DURATION, Kind.TIMESTAMP}
)


def _faults(a: Column, b: Column) -> Array | None:
    return first_fault(a.faults, b.faults)


def _int_against_double(function: str, whole: Array, real: Array) -> Mask:
    """`whole <op> real` without rounding: the double is moved to the whole number that decides the comparison."""
    edge = np.ceil(real) if function in ("_<_", "_>=_") else np.floor(real)
    inside = (edge >= -_TWO63) & (edge < _TWO63)
    within = ORDERINGS[function](whole, np.where(inside, edge, 0.0).astype(np.int64))
    beyond = (real > 0) if function in ("_<_", "_<=_") else (real < 0)
    return np.where(inside, within, beyond & ~np.isnan(real))


def _strings(compare: Comparison, a: Column, b: Column) -> Column:
    if b.is_single:
        fixed = _value_of(b)
        return Column(_tested(a, lambda value: compare(value, fixed)), _faults(a, b))
    (left, right), merged = recoded((compact(a), compact(b)))
    rank = np.empty(len(merged), np.int32)
    rank[sorted(range(len(merged)), key=merged.__getitem__)] = np.arange(len(merged), dtype=np.int32)
    return Column(compare(rank[left], rank[right]), _faults(a, b))


def _value_of(column: Column) -> Any:
    """The value of an encoded column of one value."""
    assert column.dictionary is not None
    return column.dictionary[int(column.values)]


def _tested(column: Column, test: Callable[[Any], bool]) -> Mask:
    """A test of an encoded column's values: once an entry of the dictionary, or once a row where these are fewer."""
    codes, dictionary = column.values, column.dictionary
    assert dictionary is not None
    if codes.ndim and len(codes) < len(dictionary):
        return np.array([test(dictionary[code]) for code in codes.tolist()], np.bool_)
    return np.asarray(np.array([test(entry) for entry in dictionary], np.bool_)[codes])


def equality(left: Type, right: Type) -> Callable[[Column, Column], Column]:
    """The kernel of `==` for operands of these types (optionals too); types that never meet are never equal."""
    inner = _equal_values(_content(left), _content(right))
    if Kind.OPTIONAL not in (left.kind, right.kind):
        return lambda a, b: Column(inner(a, b), _faults(a, b))
    return lambda a, b: Column(_with_presence(inner(a, b), a, b), _faults(a, b))


def has_equality(left: Type, right: Type) -> bool:
    """Whether columns of these types can be compared: not optionals of optionals."""
    return Kind.OPTIONAL not in (_content(left).kind, _content(right).kind)


def _content(type_: Type) -> Type:
    return type_.args[0] if type_.kind is Kind.OPTIONAL else type_


def _with_presence(same: Mask, a: Column, b: Column) -> Mask:
    here = np.array(True) if a.present is None else a.present
    there = np.array(True) if b.present is None else b.present
    return np.where(here & there, same, here == there)


def _equal_values(left: Type, right: Type) -> Callable[[Column, Column], Mask]:
    kinds = (left.kind, right.kind)
    if kinds == (Kind.INT, Kind.DOUBLE):
        return lambda a, b: _int_equals_double(a.values, b.values)
    if kinds == (Kind.DOUBLE, Kind.INT):
        return lambda a, b: _int_equals_double(b.values, a.values)
    if left.kind is not right.kind:
        return lambda a, b: np.zeros(np.broadcast_shapes(np.shape(a.values), np.shape(b.values)), np.bool_)
    if left.kind in _PLAIN:
        return lambda a, b: np.asarray(a.values == b.values)
    return _equal_codes


def _int_equals_double(whole: Array, real: Array) -> Mask:
    inside = (real >= INT64_MIN) & (real < _TWO63) & (np.floor(real) == real)
    return np.asarray(inside & (whole == np.where(inside, real, 0.0).astype(np.int64)))


def _equal_codes(a: Column, b: Column) -> Mask:
    if a.is_single:
        a, b = b, a
    if b.is_single:
        fixed = _value_of(b)
        return _tested(a, lambda value: equal(value, fixed))
    a, b = compact(a), compact(b)
    assert a.dictionary is not None
    if a.dictionary and isinstance(a.dictionary[0], str):
        (left, right), _ = recoded((a, b))
        return np.asarray(left == right)
    return _pairwise(a, b)


def _pairwise(a: Column, b: Column) -> Mask:
    """Lists and maps: compared once a distinct pair of dictionary entries."""
    assert a.dictionary is not None
    assert b.dictionary is not None
    pairs = a.values.astype(np.int64) * len(b.dictionary) + b.values
    distinct, place = np.unique(pairs, return_inverse=True)
    width = len(b.dictionary)
    table = [equal(a.dictionary[int(pair) // width], b.dictionary[int(pair) % width]) for pair in distinct]
    return np.asarray(np.array(table, np.bool_)[place.reshape(np.shape(pairs))])
