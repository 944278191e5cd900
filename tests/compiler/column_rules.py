"""The rules of `compiler.columns.column`, asserted of a column."""

from policyengine.compiler.columns.column import ENCODED, Column, Fault, dtype_of
from policyengine.language.types import Kind, Type, content_of


def check_column(column: Column, rows: int, type_: Type) -> None:
    """That it may be a column of so many rows of a type."""
    arrays = [array for array in (column.values, column.faults, column.present) if array is not None]
    assert {array.shape for array in arrays} <= {()} or {array.shape for array in arrays} == {(rows,)}, arrays
    kind = content_of(type_).kind
    assert column.values.dtype == dtype_of(kind), (column.values.dtype, type_)
    assert column.present is None or type_.kind is Kind.OPTIONAL, type_
    assert (column.dictionary is not None) == (kind in ENCODED), type_
    assert column.faults is None or set(column.faults.ravel().tolist()) <= {0, *Fault}, column.faults
    if column.dictionary is not None and column.values.size:
        assert column.values.min() >= -1 and column.values.max() < len(column.dictionary), column
