"""Kubernetes' CEL libraries for quantities and versions, and `cel.bind`, in expressions from outside."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.language.evaluate import EvaluationError, evaluate, parsed
from policyengine.language.functions.kubernetes import to_semver
from policyengine.language.scalar_evaluator import Evaluation

# The examples of apiserver's library documentation, and semver.org's order of precedence.
TRUE = [
    "isQuantity('1.3G')",
    "!isQuantity('1,3G')",
    "!isQuantity('200K')",
    "quantity('50000000G').isInteger()",
    "!quantity('9999999999999999999999999999999999999G').isInteger()",
    "quantity('50k').asInteger() == 50000",
    "quantity('50k').sub(20000).asApproximateFloat() == 30000.0",
    "quantity('50k').add(quantity('20k')) == quantity('70k')",
    "quantity('50k').add(20) == quantity('50020')",
    "quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20')",
    "quantity('200M').compareTo(quantity('0.2G')) == 0",
    "quantity('50M').compareTo(quantity('50Mi')) == -1",
    "quantity('150Mi').isGreaterThan(quantity('100Mi'))",
    "!quantity('100M').isLessThan(quantity('50M'))",
    "sign(quantity('-1m')) == -1",
    "isSemver('1.2.3-rc.1+linux')",
    "!isSemver('1.2')",
    "!isSemver('01.2.3')",
    "isSemver('v01.2', true)",
    "semver('v1', true) == semver('1.0.0')",
    "semver('1.0.0+a') == semver('1.0.0+b')",
    "semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))",
    "semver('1.0.0-alpha.beta').isGreaterThan(semver('1.0.0-alpha.1'))",
    "semver('1.0.0-beta.11').isGreaterThan(semver('1.0.0-beta.2'))",
    "semver('1.0.0-rc.1').compareTo(semver('1.0.0')) == -1",
    "semver('3.4.5').major() == 3 && semver('3.4.5').minor() == 4 && semver('3.4.5').patch() == 5",
    "cel.bind(x, 2, x + x) == 4",
    "cel.bind(x, 2, cel.bind(y, x + 1, [x, y])) == [2, 3]",
    "[1, 2].all(x, cel.bind(y, x, y == x))",
]


@pytest.mark.parametrize("source", TRUE)
def test_it_holds(source: str) -> None:
    assert evaluate(source, {}) is True


@pytest.mark.parametrize(
    "source",
    [
        "quantity('Mi')",
        "quantity('1.5').asInteger()",
        "quantity('1').compareTo(semver('1.0.0'))",
        "quantity('1').compareTo(1)",
        "semver('1.2')",
        "quantity('1').major()",
        "cel.bind('x', 2, 3)",
    ],
)
def test_it_has_no_value(source: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(source, {})


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_quantities_compare_as_their_numbers(a: int, b: int) -> None:
    assert evaluate(f"quantity('{a}m').compareTo(quantity('{b}m'))", {}) == (a > b) - (a < b)
    assert evaluate(f"quantity('{a}m').add(quantity('{b}m')).asApproximateFloat()", {}) == float(Fraction(a + b, 1000))


_identifiers = st.one_of(st.integers(0, 99).map(str), st.from_regex(r"[a-z-][0-9a-z]{0,2}", fullmatch=True))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.lists(_identifiers, max_size=3)), min_size=2))
def test_the_order_of_versions_is_total(parts: list[tuple[int, int, list[str]]]) -> None:
    versions = [to_semver(f"{a}.{b}.0" + (f"-{'.'.join(words)}" if words else "")) for a, b, words in parts]
    ordered = sorted(versions, key=lambda version: version.precedence)
    assert all(a.precedence <= b.precedence for a, b in pairwise(ordered))


def valued(expression: str, names: Mapping[str, object]) -> object:
    found = parsed(expression)
    assert callable(found)
    return found(Evaluation(names))


def test_a_map_that_answers_for_absent_keys_is_asked() -> None:
    class Empty(dict[str, dict[str, object]]):
        def __missing__(self, key: str) -> dict[str, object]:
            return {}

    names = {"m": Empty({"a": {"b": 1}})}
    assert valued("m['a'].b == 1", names) is True
    assert valued("m['x'].?b.orValue(2) == 2", names) is True
    assert valued("'x' in m || 'b' in m['x']", names) is False


def test_what_is_no_expression_says_why() -> None:
    assert isinstance(parsed("device.driver =="), str)
