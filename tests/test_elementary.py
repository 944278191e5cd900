"""ln, exp, pow and ln Γ: near the truth, alike for single values and columns, and the same bits everywhere."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from hashlib import blake2b
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.compiler.columns.arithmetic_kernels import _ALL_ROWS
from policyengine.elementary import exp, ln, ln_gamma, ln_of_rest, power

EDGES = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 5e-324, 2.2250738585072014e-308, 1e308, 2.0**53,
         2.0**53 + 2, 709.782712893384, 709.7827128933841, -745.2, math.inf, -math.inf, math.nan)  # fmt: skip
ANY = st.floats() | st.sampled_from(EDGES)


def units(found: float, truth: Decimal) -> float:
    """How many units in the last place lie between."""
    return float(abs(Decimal(found) - truth) / Decimal(math.ulp(float(truth))))


def drawn(seed: int) -> list[tuple[float, float]]:
    random = Random(seed)
    return [(random.random() * 2.0 ** random.randint(-18, 18), random.uniform(-20, 20)) for _ in range(2_000)]


def test_each_is_within_seven_tenths_of_a_unit_of_the_truth() -> None:
    with localcontext() as context:
        context.prec = 50
        for x, y in drawn(1):
            assert units(ln(x), Decimal(x).ln()) < 0.7
            assert units(exp(y), Decimal(y).exp()) < 0.7
            assert units(power(x, y), (Decimal(y) * Decimal(x).ln()).exp()) < 0.7


def test_powers_that_are_whole_are_exact() -> None:
    for base, exponent in product(range(1, 60), range(12)):
        if base**exponent < 2**53:
            assert power(float(base), float(exponent)) == float(base**exponent)
    assert [power(2.0, float(k)) for k in range(-1074, 1024)] == [math.ldexp(1.0, k) for k in range(-1074, 1024)]


def libm(base: float, exponent: float) -> float:
    """IEEE 754's pow, by the C library's, which Python makes raise."""
    odd = abs(exponent) < 2**53 and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.copysign(math.inf, base) if odd else math.inf
    except ValueError:
        return math.nan if base else math.copysign(math.inf, base) if odd else math.inf


@pytest.mark.parametrize(("base", "exponent"), list(product(EDGES, EDGES)))
def test_the_special_cases_are_ieee_754s(base: float, exponent: float) -> None:
    found, wanted = power(base, exponent), libm(base, exponent)
    if math.isfinite(wanted) and wanted:
        assert math.isclose(found, wanted, rel_tol=1e-15)
    else:
        assert repr(found) == repr(wanted)


def test_the_edges_of_ln_and_exp() -> None:
    assert [ln(x) for x in (0.0, -0.0, 1.0, math.inf)] == [-math.inf, -math.inf, 0.0, math.inf]
    assert all(map(math.isnan, (ln(-1.0), ln(-math.inf), ln(math.nan), exp(math.nan))))
    assert [exp(x) for x in (0.0, -0.0, math.inf, -math.inf, 710.0, -800.0)] == [1.0, 1.0, math.inf, 0.0, math.inf, 0.0]
    assert exp(-745.0) == 5e-324


@given(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=40))
def test_a_column_has_the_bits_of_its_single_values(rows: list[tuple[float, float]]) -> None:
    x, y = (np.array(values) for values in zip(*rows, strict=True))
    with np.errstate(all="ignore"):
        columns: list[Any] = [ln(x, _ALL_ROWS), exp(x, _ALL_ROWS), power(x, y, _ALL_ROWS)]
    singles = [[ln(a) for a, _ in rows], [exp(a) for a, _ in rows], [power(a, b) for a, b in rows]]
    for column, single in zip(columns, singles, strict=True):
        assert np.array_equal(np.asarray(column).view(np.int64), np.array(single).view(np.int64)) or (
            [repr(value) for value in column.tolist()] == [repr(value) for value in single]
        )


@given(st.floats(1e-300, 1e300))
def test_the_logarithm_of_gamma_agrees_with_the_c_librarys(x: float) -> None:
    assert ln_gamma(x) == pytest.approx(math.lgamma(x), rel=1e-13, abs=2e-14)


@given(st.floats(0.0, 1.0, exclude_max=True))
def test_the_logarithm_of_what_is_left_of_one(x: float) -> None:
    assert ln_of_rest(x) == pytest.approx(math.log1p(-x), rel=1e-15)


def test_the_bits_are_these_on_every_machine() -> None:
    """Found once, on a machine with AVX-512: another one, or another version of numpy or of libm, finds the same."""
    found = blake2b(digest_size=8)
    values = drawn(2)
    with np.errstate(all="ignore"):
        x, y = (np.array(column) for column in zip(*values, strict=True))
        for column in (ln(x, _ALL_ROWS), exp(y, _ALL_ROWS), power(x, y, _ALL_ROWS), ln_gamma(x, _ALL_ROWS)):
            found.update(column.tobytes())
    assert found.hexdigest() == "38b4940e206ca8cd"
