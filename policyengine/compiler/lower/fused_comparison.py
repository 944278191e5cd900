"""Comparisons whose operands need not be put together row by row first: `o.orValue(d) == b`, `x - s >= b`.

Where d, s and b are the same for all rows, so is what the rows are held against. Which faults there are, and the answer
in every row, is what the plain operations say; a property test holds them together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from policyengine.compiler.columns import arithmetic_kernels
from policyengine.compiler.columns.arithmetic_kernels import Kernel
from policyengine.compiler.columns.column import INT64_MAX, Column
from policyengine.compiler.columns.frame import Vector
from policyengine.compiler.columns.kernels import COMPARISONS, kernel_of
from policyengine.compiler.columns.logic_kernels import or_value
from policyengine.language import ir
from policyengine.language.types import Shape


def comparison_of(expr: ir.Call, kernel: Kernel, lower: Callable[[ir.Expr], Vector]) -> Vector | None:
    """The column closure of such a comparison, whose plain kernel is `kernel`; None for any other call."""
    if expr.function not in COMPARISONS:
        return None
    left, right = expr.args
    return _sided(left, right, kernel, lower) or _sided(right, left, lambda a, b: kernel(b, a), lower)


def _sided(whole: ir.Expr, other: ir.Expr, compare: Kernel, lower: Callable[[ir.Expr], Vector]) -> Vector | None:
    if not isinstance(whole, ir.Call) or whole.shape is Shape.SCALAR or len(whole.args) != 2:
        return None
    inner = kernel_of(whole)
    if inner is or_value:
        fused = with_default(compare)
    elif inner is not None and inner in _SIGN and _are_amounts(whole, whole.args[1], other):
        fused = with_term(compare, inner)
    else:
        return None
    first, second, third = lower(whole.args[0]), lower(whole.args[1]), lower(other)
    return lambda frame: fused(first(frame), second(frame), third(frame))


def _are_amounts(whole: ir.Expr, term: ir.Expr, other: ir.Expr) -> bool:
    """Whether the sum and what it is held against are counted alike, and neither that nor the term differs by row."""
    return other.type.kind is whole.type.kind and term.shape is Shape.SCALAR and other.shape is Shape.SCALAR


_SIGN: dict[Kernel, int] = {arithmetic_kernels.add: 1, arithmetic_kernels.subtract: -1}


def with_default(compare: Kernel) -> Kernel:
    """`o.orValue(d)` against b: the rows that hold nothing all have one answer."""

    def kernel(optional: Column, default: Column, other: Column) -> Column:
        present = optional.present
        if present is None:
            return compare(optional, other)
        if not (_is_fixed(default) and _is_fixed(other)):
            return compare(or_value(optional, default), other)
        elsewhere = compare(default, other)
        if present.ndim == 0 and not present:
            return elsewhere.with_faults(optional.faults)
        held = compare(optional.held(), other)
        values = held.values | ~present if elsewhere.values else held.values & present
        return Column(values, held.faults)

    return kernel


def with_term(compare: Kernel, arithmetic_kernel: Kernel) -> Kernel:
    """`x + s` or `x - s` of int64 against b: x against what is left of b, where nothing can overflow."""
    sign = _SIGN[arithmetic_kernel]

    def kernel(x: Column, term: Column, other: Column) -> Column:
        if _is_fixed(term) and _is_fixed(other) and x.bound + term.bound <= INT64_MAX:
            limit = int(other.values) - sign * int(term.values)
            if -INT64_MAX <= limit <= INT64_MAX:
                return compare(x, Column(np.array(limit, np.int64), bound=abs(limit)))
        return compare(arithmetic_kernel(x, term), other)

    return kernel


def _is_fixed(column: Column) -> bool:
    return column.is_single and column.faults is None
