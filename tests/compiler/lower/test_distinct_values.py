"""Which rows stand for others where an expression is worked out by value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.compiler.columns.column import Column
from policyengine.compiler.lower import vector

DOUBLES = st.sampled_from((0.0, -0.0, 1.5, float("nan"), float("inf")))
WORDS = ("a", "b", "c", "d")


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, list[Column]]:
    rows = draw(st.integers(1, 30))

    def of(values: st.SearchStrategy[object], dtype: type[np.generic]) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
        return np.array(draw(st.lists(values, min_size=rows, max_size=rows)), dtype)

    def column(kind: str) -> Column:
        if kind == "code":
            return Column(of(st.integers(-1, 3), np.int32), present=of(st.booleans(), np.bool_), dictionary=WORDS)
        if kind == "bool":
            return Column(of(st.booleans(), np.bool_), faults=of(st.integers(0, 9), np.uint8))
        if kind == "int":
            return Column(of(st.sampled_from((0, 1, -(2**63), 2**63 - 1)), np.int64))
        return Column(of(DOUBLES, np.float64), present=np.array(True))

    kinds = draw(st.lists(st.sampled_from(("code", "bool", "int", "double")), min_size=1, max_size=5))
    return rows, [column(kind) for kind in kinds]


def seen(column: Column, row: int) -> tuple[object, ...]:
    arrays = (column.values, column.faults, column.present)
    return tuple(array[row].tobytes() for array in arrays if array is not None and array.ndim)


@settings(max_examples=60)
@given(table=tables())
def test_a_row_is_stood_for_by_one_that_is_alike(table: tuple[int, Sequence[Column]]) -> None:
    rows, held = table
    standing, places = vector._distinct(held, rows)
    assert places is not None
    kinds = [tuple(seen(column, row) for column in held) for row in range(rows)]
    assert [kinds[int(standing[place])] for place in places] == kinds
    assert len(standing) == len(set(kinds))
