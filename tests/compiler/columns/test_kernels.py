"""The table of kernels: every function of a policy has an entry, and a column answers what a single value answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.compiler.columns.arithmetic_kernels import beta_share
from policyengine.compiler.columns.column import Column, Failed, attempt, column_of, plain
from policyengine.compiler.columns.kernels import KERNELS
from policyengine.language.functions import FUNCTIONS
from policyengine.language.functions.probability import beta_cdf
from policyengine.language.functions.table import is_open, substitute
from policyengine.language.types import DOUBLE, INT, STRING, Kind, Type
from policyengine.language.values import optional
from tests.compiler.column_rules import check_column


def test_every_function_has_a_kernel_or_says_that_it_has_none() -> None:
    of_policies = {name for name, function in FUNCTIONS.items() if not function.is_dynamic}
    assert of_policies - KERNELS.keys() == set()
    assert KERNELS.keys() - FUNCTIONS.keys() == set()


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


# --- extremes ----------------------------------------------------------------------------------------------

_WHOLE = (0, 1, -1, -7, 100, 2**53 + 1, 2**63 - 1, -(2**63))
_DOUBLES = (
    *(0.0, -0.0, 1.0, -1.5, 0.5, 5e-324, 1e-300, 1e300, 1e308, -1e308, 1.7976931348623157e308),
    *(math.nan, math.inf, -math.inf, 2.0**63, -(2.0**63)),
)
_TEXTS = (
    *("", "a", "-", "[", "(a+)+$", "7", "1.5", "1_0", "0x10", "\u0663", "inf", "nan", "1e999", "1e9999999", "9" * 25),
    *("-9223372036854775808", "5Gi", "500m", "100E", "1h", "-1ns", "2024-02-30T00:00:00Z", "0001-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59.999999999Z", "Europe/Berlin", "+99:99", "no/zone", "../etc", "\x00\u00e9\u202e"),
)


ROWS = 400


def extremes(type_: Type) -> Sequence[Any]:
    """Values of a type at the ends of what it holds; none of objects."""
    kind = type_.kind
    if kind in (Kind.BOOL, Kind.STRING, Kind.DOUBLE):
        return {Kind.BOOL: (True, False), Kind.STRING: _TEXTS, Kind.DOUBLE: _DOUBLES}[kind]
    if kind is Kind.LIST:
        values = extremes(type_.args[0])
        return [], [*values[:1]], [*values[:3]], [*values[-3:]], [*values]
    if kind is Kind.OPTIONAL:
        return [optional(None), *map(optional, extremes(type_.args[0]))]
    if kind is Kind.MAP:
        return {}, dict(zip(*map(extremes, type_.args), strict=False))
    return () if kind in (Kind.OBJECT, Kind.TYPE, Kind.NULL, Kind.DYN) or type_.name else _WHOLE


def calls() -> list[tuple[str, tuple[Type, ...], Type, Any]]:
    """(function, parameters, result, implementation) of every overload; ints, doubles and strings for a variable."""
    found = []
    for name, one in FUNCTIONS.items():
        for overload in (overload for overload in one.overloads if not overload.dynamic):
            whole = (*overload.parameters, overload.result)
            for content in (INT, DOUBLE, STRING) if any(map(is_open, whole)) else (INT,):
                *parameters, result = (substitute(part, dict.fromkeys("TKV", content)) for part in whole)
                found.append((name, tuple(parameters), result, overload.implementation))
    return found


def answer(implementation: Any, arguments: Sequence[Any]) -> Any:
    """What a single value's implementation answers: `Failed` where it has no value; nothing else is raised."""
    found = attempt(implementation, *arguments)
    return "failed" if isinstance(found, Failed) else plain(found)


@pytest.mark.parametrize("name", sorted({name for name, parameters, *_ in calls() if all(map(extremes, parameters))}))
def test_a_function_answers_or_fails_at_the_extremes_and_its_column_alike(name: str) -> None:
    for _, parameters, result, implementation in (call for call in calls() if call[0] == name):
        values = [extremes(parameter) for parameter in parameters]
        if not all(values):
            continue
        every = prod(map(len, values)) <= ROWS
        rng = Random(name)
        rows = list(product(*values)) if every else [tuple(map(rng.choice, values)) for _ in range(ROWS)]
        wanted = [answer(implementation, row) for row in rows]
        kernel = KERNELS[name](parameters) if name in KERNELS else None
        if kernel is None:
            continue
        columns = [column_of(values, kind) for values, kind in zip(zip(*rows, strict=True), parameters, strict=True)]
        with np.errstate(all="ignore"):
            column = kernel(*columns)
        check_column(column, len(rows), result)
        got = ["failed" if isinstance(value, Failed) else value for value in column.to_list(len(rows))]
        for row, one, other in zip(rows, got, wanted, strict=True):
            assert repr(one) == repr(other), (name, row)
