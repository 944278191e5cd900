"""Arithmetic over columns: checked 64-bit integers, IEEE doubles, quantities that scale to whole grains.

Every kernel is strict: a row fails where an operand failed. Integer kernels never wrap around: a row whose result does
not fit fails. The scalar forms in `language.functions` answer the same, bit for bit; a property test compares the two.

Callers evaluate under `np.errstate(all="ignore")`: what numpy would warn about is masked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.compiler.columns.column import (
    INT64_MIN,
    Array,
    Column,
    Fault,
    Faults,
    Mask,
    faults_where,
    first_fault,
)
from policyengine.elementary import Lanes
from policyengine.language.functions.probability import beta_cdf

Kernel = Callable[..., Column]
FEW = 24
"""Values up to which it is faster to work out one after the other what takes a hundred operations of numpy."""
_EXACT = 2**53
"""Integers up to here are doubles without loss."""


def _faults(*operands: Column) -> Faults | None:
    faults: Faults | None = None
    for operand in operands:
        faults = first_fault(faults, operand.faults)
    return faults


def add(a: Column, b: Column) -> Column:
    """`a + b`, int64."""
    values = a.values + b.values
    return _checked(values, ((a.values ^ values) & (b.values ^ values)) < 0, a, b)


def subtract(a: Column, b: Column) -> Column:
    """`a - b`, int64."""
    values = a.values - b.values
    return _checked(values, ((a.values ^ b.values) & (a.values ^ values)) < 0, a, b)


def multiply(a: Column, b: Column) -> Column:
    """`a * b`, int64."""
    values = a.values * b.values
    divisor = np.where(a.values == 0, 1, a.values)
    wrapped = (values // divisor != b.values) & (a.values != 0)
    return _checked(values, wrapped | ((a.values == -1) & (b.values == INT64_MIN)), a, b)


def _checked(values: Array, overflow: Mask, *operands: Column) -> Column:
    return Column(values, first_fault(_faults(*operands), faults_where(overflow, Fault.OVERFLOW)))


def _divided(a: Column, b: Column, quotient: Callable[[Array, Array], Array]) -> Column:
    """A division whose rows fail where b is 0, or where the one quotient that does not fit comes out."""
    by_zero, overflow = b.values == 0, (a.values == INT64_MIN) & (b.values == -1)
    faults = first_fault(_faults(a, b), faults_where(by_zero, Fault.DIVISION))
    divisor = np.where(by_zero | overflow, 1, b.values)
    return Column(quotient(a.values, divisor), first_fault(faults, faults_where(overflow, Fault.OVERFLOW)))


def divide(a: Column, b: Column) -> Column:
    """`a / b` truncated towards zero, int64."""
    return _divided(a, b, lambda x, y: (x - np.fmod(x, y)) // y)


def remainder(a: Column, b: Column) -> Column:
    """`a % b` with the sign of a, int64."""
    return _divided(a, b, np.fmod)


def negate(a: Column) -> Column:
    """`-a`, int64."""
    return _checked(-a.values, a.values == INT64_MIN, a)


def absolute(a: Column) -> Column:
    """`abs(a)`, int64."""
    return _checked(np.abs(a.values), a.values == INT64_MIN, a)


def double_kernel(function: Callable[..., Array]) -> Kernel:
    """A kernel of doubles whose values are those of a numpy function; it never fails by itself."""
    return lambda *operands: Column(function(*[one.values for one in operands]), _faults(*operands))


def to_double(a: Column) -> Column:
    """`double(a)` of an int column."""
    return Column(a.values.astype(np.float64), a.faults, a.present)


def in_units(grain: int) -> Kernel:
    """`double(q)`: a quantity or duration in whole units, `grain` of which its integers count."""
    return lambda a: Column(_quotients(a.values, np.array(grain)), a.faults)


def _quotients(a: Array, b: Array) -> Array:
    """`a / b` of integers (b not 0) as the nearest doubles, however large they are."""
    if _are_exact(a) and _are_exact(b):
        return a / b
    wide, narrow = np.broadcast_arrays(a, b)
    exact = [int(x) / int(y) for x, y in zip(wide.ravel(), narrow.ravel(), strict=True)]
    return np.array(exact, np.float64).reshape(wide.shape)


def _are_exact(values: Array) -> bool:
    """Whether all are doubles without loss."""
    return bool(((values >= -_EXACT) & (values <= _EXACT)).all())


def quantity_quotient(a: Column, b: Column) -> Column:
    """`q / q`: a double; fails where b is 0."""
    by_zero = b.values == 0
    values = _quotients(a.values, np.where(by_zero, 1, b.values))
    return Column(values, first_fault(_faults(a, b), faults_where(by_zero, Fault.DIVISION)))


def ratio_of_whole(a: Column, b: Column) -> Column:
    """`ratio(a, b)` of ints or quantities: a / b kept within 0..1, 0 where b is 0."""
    by_zero = b.values == 0
    values = _within_one(_quotients(a.values, np.where(by_zero, 1, b.values)))
    return Column(np.where(by_zero, 0.0, values), _faults(a, b))


def ratio_of_doubles(a: Column, b: Column) -> Column:
    """`ratio(a, b)` of doubles; NaN stays NaN."""
    by_zero = b.values == 0.0
    values = _within_one(a.values / np.where(by_zero, 1.0, b.values))
    return Column(np.where(by_zero, 0.0, values), _faults(a, b))


def _within_one(values: Array) -> Array:
    return np.minimum(np.maximum(values, 0.0), 1.0) + 0.0  # no negative zero


def scale(a: Column, factor: Column) -> Column:
    """`q * d`: a quantity or duration times a double, rounded to the grain, half to even."""
    return to_grain(a.values.astype(np.float64) * factor.values, a, factor)


def unscale(a: Column, divisor: Column) -> Column:
    """`q / d`: a quantity or duration over a double, rounded to the grain; fails where d is 0."""
    result = to_grain(a.values.astype(np.float64) / divisor.values, a, divisor)
    by_zero = faults_where(divisor.values == 0.0, Fault.DIVISION)
    return Column(result.values, first_fault(by_zero, result.faults))


def to_grain(values: NDArray[np.float64], *operands: Column) -> Column:
    """Doubles rounded to whole grains, half to even; a row fails where an operand did, or where it does not fit."""
    return _rounded(np.rint(values), _faults(*operands))


def _rounded(values: NDArray[np.float64], faults: Faults | None) -> Column:
    """Whole doubles as int64; a row fails where it is not finite or does not fit."""
    return _whole(values, ~((values >= -(2.0**63)) & (values < 2.0**63)), faults)


def _whole(values: NDArray[np.float64], outside: Mask, faults: Faults | None) -> Column:
    """Doubles truncated to int64, where they are not outside."""
    if not outside.any():
        return Column(values.astype(np.int64), faults)
    kind = np.where(np.isfinite(values), np.uint8(Fault.OVERFLOW), np.uint8(Fault.NOT_FINITE))
    wrong = np.where(outside, kind, np.uint8(0))
    return Column(np.where(outside, 0.0, values).astype(np.int64), first_fault(faults, wrong))


def divide_to_grain(a: Column, b: Column) -> Column:
    """`q / n`: a quantity or duration over an int, rounded to the grain, half to even; fails where n is 0."""
    return _divided(a, b, _half_even)


def _half_even(a: Array, b: Array) -> Array:
    quotient, rest = np.floor_divide(a, b), np.remainder(a, b)
    # The remainder has the sign of b; twice it may overflow, so what is left to b is compared instead.
    left = b - rest
    over = np.where(b > 0, rest > left, rest < left)
    return np.asarray(quotient + (over | ((rest == left) & (quotient % 2 != 0))))


def round_with(function: Callable[[Array], Array]) -> Kernel:
    """`floor`, `ceil`, `round` of doubles: an int64; a row fails where it is not finite or does not fit."""
    return lambda a: _rounded(function(a.values), a.faults)


def half_away(values: Array) -> Array:
    """Doubles rounded to whole ones, halves away from zero, as CEL's `math.round`."""
    return np.where(np.abs(values - np.trunc(values)) == 0.5, np.trunc(values) + np.sign(values), np.rint(values))


def extreme(pick: np.ufunc) -> Kernel:
    """`min(a, b)`, `max(a, b)` of int64."""
    return lambda a, b: Column(pick(a.values, b.values), _faults(a, b))


def extreme_double(closer: np.ufunc) -> Kernel:
    """`min(a, b)`, `max(a, b)` of doubles: the first of equal ones, NaN where one is NaN."""

    def kernel(a: Column, b: Column) -> Column:
        chosen = (closer(b.values, a.values) | np.isnan(b.values)) & ~np.isnan(a.values)
        return Column(np.where(chosen, b.values, a.values), _faults(a, b))

    return kernel


def truncated(a: Column) -> Column:
    """`int(d)`: truncated; a row fails where d is beyond 64 bits or at their very edge."""
    return _whole(a.values, ~((a.values > -(2.0**63)) & (a.values < 2.0**63)), a.faults)


def beta_share(x: Column, a: Column, b: Column) -> Column:
    """`betaCdf(x, a, b)`: fails where a or b is not positive, NaN where they are infinite or x is NaN."""
    wrong = ~((a.values > 0) & (b.values > 0))
    shares = np.asarray(beta_cdf(x.values, a.values, b.values, _ALL_ROWS))
    return Column(shares, first_fault(_faults(x, a, b), faults_where(wrong, Fault.FAILED)))


def elementary(function: Callable[..., Any]) -> Kernel:
    """A kernel of doubles by one of the functions of `policyengine.elementary`; it never fails by itself."""

    def compute(*values: Array) -> Array:
        if max(map(np.size, values)) > FEW:
            return np.asarray(function(*values, _ALL_ROWS))
        wide = np.broadcast_arrays(*values)
        found = [function(*row) for row in zip(*(one.ravel().tolist() for one in wide), strict=True)]
        return np.array(found, np.float64).reshape(wide[0].shape)

    return double_kernel(compute)


def _split(x: Array) -> tuple[Array, Array]:
    m, e = np.frexp(x)
    return m, e.astype(np.float64)


_ALL_ROWS = Lanes(
    np.where,
    lambda which: bool(np.all(which)),
    _split,
    lambda x, e: np.ldexp(x, np.asarray(e).astype(np.int32)),
    np.rint,
    np.signbit,
)
