"""Sums of groups of doubles, exactly rounded: whatever the order of the rows, and however the sum came about.

Every double is a whole multiple of a power of two. The multiples are added as integers of as many 32-bit limbs as the
values span (a superaccumulator, after Kulisch), and rounded once, half to even. What `math.fsum` gives for one list,
for all groups at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_LIMB: Final = 32
_MASK: Final = np.int64(2**32 - 1)
_EXACT: Final = 2.0**53
_MOST_ROWS: Final = 1 << 18
"""So many limbs of at most 2^34 add up to less than 2^53: exact as doubles, which is how numpy counts."""


def exact_sums(values: Doubles, groups: Ints, count: int) -> Doubles:
    """The sum of each group: `float64[count]`, 0.0 of nothing.

    Arguments:
        values: `float64[m]`.
        groups: `int64[m]`, the group of each, below `count`.
    """
    finite = np.isfinite(values)
    if finite.all():
        return _finite_sums(values, groups, count)
    sums = _finite_sums(values[finite], groups[finite], count)
    kinds = (values == np.inf, values == -np.inf, np.isnan(values))
    above, below, wrong = (_has(where, groups, count) for where in kinds)
    sums = np.where(above, np.inf, np.where(below, -np.inf, sums))
    return np.where(wrong | (above & below), np.nan, sums)


def _has(where: NDArray[np.bool_], groups: Ints, count: int) -> NDArray[np.bool_]:
    found = np.zeros(count, np.bool_)
    found[groups[where]] = True
    return found


def _finite_sums(values: Doubles, groups: Ints, count: int) -> Doubles:
    if len(values) == 0:
        return np.zeros(count)
    sizes = np.abs(values[values != 0.0])
    if len(sizes) == 0:
        return np.zeros(count)
    spread = np.frexp(np.array([sizes.min(), sizes.max()]))[1].tolist()
    if _fits_two(spread[0], spread[1], len(values).bit_length()):
        return _two_sums(values, groups, count, spread[1])
    fractions, exponents = np.frexp(values)
    whole = (fractions * _EXACT).astype(np.int64)
    exponents = np.where(values == 0.0, exponents.max(), exponents).astype(np.int64) - 53
    least = int(exponents.min())
    limbs = _accumulated(whole, exponents - least, groups, count)
    return _rounded(limbs, least)


def _fits_two(least: int, most: int, bits: int) -> bool:
    """Whether two halves of all values, of exponents within `least` and `most`, add up without rounding."""
    return most - least <= 54 - 2 * bits and most + bits < 1024 and least - 53 > -1022


def _two_sums(values: Doubles, groups: Ints, count: int, most: int) -> Doubles:
    """The sums where `_fits_two`: the high halves on a coarse grid, what is left of them, and one rounding."""
    step = np.ldexp(1.0, most - 53 + len(values).bit_length())
    high = np.rint(values / step) * step
    low = np.bincount(groups, values - high, minlength=count)
    return np.asarray(np.bincount(groups, high, minlength=count) + low + 0.0, np.float64)


def _accumulated(whole: Ints, shifts: Ints, groups: Ints, count: int) -> Ints:
    """Sums of `whole << shifts` as signed 32-bit limbs with carries still in them: `int64[limbs, count]`."""
    width = int(shifts.max()) // _LIMB + 3
    sums = np.zeros(width * count, np.int64)
    for start in range(0, len(whole), _MOST_ROWS):
        part = slice(start, start + _MOST_ROWS)
        _accumulate(whole[part], shifts[part], groups[part], count, sums)
    return sums.reshape(width, count)


def _accumulate(whole: Ints, shifts: Ints, groups: Ints, count: int, sums: Ints) -> None:
    # Arithmetic shifts keep the sign in the highest part; a part of 2^32 and one of 2^53 still add up exactly.
    place, offset = shifts >> 5, shifts & 31
    low, high = (whole & _MASK) << offset, (whole >> _LIMB) << offset
    middle = ((low >> _LIMB) & _MASK) + (high & _MASK)
    at = place * count + groups
    for part in (low & _MASK, middle, high >> _LIMB):
        sums += np.bincount(at, part, minlength=len(sums)).astype(np.int64)
        at = at + count


def _carried(limbs: Ints) -> tuple[Ints, Ints]:
    """Limbs within 32 bits, and what is carried out of the last: negative for a negative sum."""
    limbs = limbs.copy()
    carry: Ints = np.zeros(limbs.shape[1], np.int64)
    for limb in limbs:
        limb += carry
        carry = limb >> _LIMB
        limb &= _MASK
    return limbs, carry


def _rounded(sums: Ints, least: int) -> Doubles:
    """The nearest doubles to `sums * 2^least`, halves to the even one."""
    _, carry = _carried(sums)
    negative = carry < 0
    limbs, carry = _carried(np.where(negative, -sums, sums))
    # Two empty limbs below, so that there always are three to look at.
    padded = np.concatenate((np.zeros((2, limbs.shape[1]), np.int64), limbs, carry[np.newaxis]))
    filled = padded != 0
    top = len(padded) - 1 - np.argmax(filled[::-1], axis=0)
    top = np.maximum(top, 2)
    column = np.arange(padded.shape[1])
    first, second, third = (padded[top - back, column].astype(np.uint64) for back in range(3))
    sticky = np.argmax(filled, axis=0) < top - 2
    width = np.frexp(first.astype(np.float64))[1]
    return _nearest((first, second, third), width, sticky & filled.any(axis=0), (top - 4) * _LIMB + least, negative)


def _nearest(
    words: tuple[Words, Words, Words],
    width: NDArray[np.int32],
    sticky: NDArray[np.bool_],
    exponent: Ints,
    negative: NDArray[np.bool_],
) -> Doubles:
    """`words` as one number of 64 + `width` bits, times 2^`exponent`; `sticky`: there is something below."""
    first, second, third = words
    bits = width.astype(np.uint64)
    head = _left(first, 64 - bits) | (second << (np.uint64(32) - bits)) | (third >> bits)
    below = sticky | ((third & ((np.uint64(1) << bits) - np.uint64(1))) != 0)
    kept, rest = head >> np.uint64(11), head & np.uint64(2**11 - 1)
    half = np.uint64(2**10)
    up = (rest > half) | ((rest == half) & (below | ((kept & np.uint64(1)) == 1)))
    size = np.ldexp((kept + up).astype(np.float64), (exponent + width + 11).astype(np.int64))
    return np.asarray(np.where(negative, -size, size) + 0.0, np.float64)


def _left(values: Words, bits: Words) -> Words:
    """`values << bits`, 0 where that is by 64 bits: C does not say what such a shift gives."""
    return np.where(bits >= np.uint64(64), np.uint64(0), values << np.minimum(bits, np.uint64(63)))
