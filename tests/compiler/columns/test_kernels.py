"""The table of kernels: every function of a policy has an entry, and a column answers what a single value answers."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from policyengine.compiler.columns.arithmetic_kernels import beta_share
from policyengine.compiler.columns.column import Column
from policyengine.compiler.columns.kernels import KERNELS, SCALAR_KERNELS
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.probability import beta_cdf


def test_every_function_has_a_kernel_or_says_that_it_has_none() -> None:
    of_policies = {name for name, function in FUNCTIONS.items() if not function.is_dynamic}
    assert of_policies - KERNELS.keys() == set()
    assert KERNELS.keys() - FUNCTIONS.keys() == set()


def test_what_numpy_answers_is_not_folded() -> None:
    assert not any(FUNCTIONS[name].folds for name in SCALAR_KERNELS)


_shapes = st.floats(1e-3, 1e3)
_rows = st.lists(st.tuples(st.floats(-0.5, 1.5) | st.just(math.nan), _shapes, _shapes), min_size=1, max_size=8)


@given(_rows)
def test_a_column_of_beta_shares_has_the_bits_of_its_single_values(rows: list[tuple[float, float, float]]) -> None:
    x, a, b = (Column(np.array(values)) for values in zip(*rows, strict=True))
    with np.errstate(all="ignore"):
        column = beta_share(x, a, b).values
    assert column.tobytes() == np.array([beta_cdf(*row) for row in rows]).tobytes()


def test_a_beta_share_of_no_distribution_fails() -> None:
    with np.errstate(all="ignore"):
        answer = beta_share(Column(np.array(0.5)), Column(np.array([0.0, 1.0])), Column(np.array([1.0, math.inf])))
    assert answer.faults is not None
    assert (answer.faults != 0).tolist() == [True, False]
    assert math.isnan(answer.values[1])
