"""The scalar evaluator: typed trees keep their types, dynamic ones answer as CEL does, nothing else escapes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import policyengine
from policyengine.language import scalar_evaluator
from policyengine.language.evaluate import EvaluationError, evaluate
from policyengine.language.scalar_evaluator import evaluated
from tests.language.checking import let, wrong
from tests.language.expressions import EXPRESSIONS
from tests.language.trees import printed
from tests.language.typed import ALONE, Anything, is_of, sources

PLAIN: list[tuple[str, dict[str, Any], Any]] = [
    ("a + b", {"a": 1, "b": 2}, 3),
    ("a.b.c", {"a": {"b": {"c": True}}}, True),
    ("a.b", {"a.b": 1, "a": {"b": 2}}, 1),
    ("m[true]", {"m": {True: "yes"}}, "yes"),
    ("{true: 'yes', 1: 'one'}[true]", {}, "yes"),
    ("{true: 'yes', 1: 'one'}[1]", {}, "one"),
    ("m[1.0]", {"m": {1: "one"}}, "one"),
    ("m[?1].hasValue()", {"m": {True: "yes"}}, False),
    ("[1, 'a', null]", {}, [1, "a", None]),
    ("1 == 1.0", {}, True),
    ("9007199254740993 == 9007199254740992.0", {}, False),
    ("9007199254740993 > 9007199254740992.0", {}, True),
    ("true == 1", {}, False),
    ("1 in [1.0]", {}, True),
    ("d + duration('1s')", {"d": timedelta(seconds=2)}, timedelta(seconds=3)),
    ("t + d", {"t": datetime(2026, 1, 1, tzinfo=UTC), "d": timedelta(1)}, datetime(2026, 1, 2, tzinfo=UTC)),
    ("{'a': 1}.?b", {}, None),
    ("{'a': 1}.?a", {}, 1),
    ("dyn(1) == 1", {}, True),
    ("{'a': 1, 'b': 2}.all(k, v, v > 0)", {}, True),
    ("[10, 20].transformList(i, x, i + x)", {}, [10, 21]),
    ("{'a': 1}.transformMap(k, v, v + 1)", {}, {"a": 2}),
    ("[1, 2, 3].map(x, x > 1, x * 2)", {}, [4, 6]),
    ("[[1], [2]].map(x, x.map(y, y + 1))", {}, [[2], [3]]),
    ("[1].map(x, [2].map(x, x)[0] + x)", {}, [3]),
    ("!!type(0) == int", {}, True),  # two signs in a row are dropped unread, as by cel-cpp; in brackets they count
    ('- -"a"', {}, "a"),
    ("--(-9223372036854775808)", {}, -(2**63)),
    ("100 * ratio(a, b)", {"a": 1, "b": 4}, 25.0),  # an int literal beside a double expression is a double
    ("1 - x", {"x": 0.25}, 0.75),
    ("clamp(x, 0, 1)", {"x": 1.5}, 1.0),
    ("max(x, -1)", {"x": -2.5}, -1.0),
    ("[0.5, 1.5].map(x, 2 * x)", {}, [1.0, 3.0]),
    ("sqrt(4)", {}, 2.0),
    ("pow(2, 10)", {}, 1024.0),
    ("betaCdf(0, 2, 2)", {}, 0.0),
]


@pytest.mark.parametrize(("source", "bindings", "value"), PLAIN)
def test_plain_values_go_in_and_come_out(source: str, bindings: dict[str, Any], value: Any) -> None:
    assert evaluate(source, bindings) == value


ERRORS = [
    ("1 +", {}, "expected"),
    ("x", {}, "nothing is called `x`"),
    ("1 / 0", {}, "division by zero"),
    ("[1][1]", {}, "index out of range"),
    ("{'a': 1}.b", {}, "no such key `b`"),
    ("(1).x", {}, "an int has no fields"),
    ("{true: 1, 1: 2}", {}, "hold both"),
    ("x + 1", {"x": "a"}, "`+` does not take string, int"),
    ("1 + 1.0", {}, "`+` does not take int, double"),
    ("n * x", {"n": 2, "x": 1.5}, "`*` does not take int, double"),
    ("n + 1.0", {"n": 2}, "`+` does not take int, double"),
    ("sqrt(n)", {"n": 4}, "`sqrt` does not take int"),
    ("b'x'", {}, "no plain values"),
    ("7u", {}, "no plain values"),
    ("[1].all(x, x)", {}, "a bool is wanted"),
    ("has(1)", {}, "`has` takes a field"),
    ('-(-"a")', {}, "`-` does not take string"),
    ("9223372036854775808", {}, ""),
    ("optional.none().value()", {}, "the optional is empty"),
]


@pytest.mark.parametrize(("source", "bindings", "fragment"), ERRORS)
def test_an_expression_without_a_value_says_why(source: str, bindings: dict[str, Any], fragment: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(source, bindings)
    assert fragment in str(caught.value)


@pytest.mark.parametrize("value", [object(), b"x", {1.5: 1}, datetime(2026, 1, 1)])
def test_what_is_no_plain_value_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        evaluate("x", {"x": value})


def test_the_package_offers_evaluate() -> None:
    assert policyengine.evaluate("1 + 1", {}) == 2
    assert policyengine.EvaluationError is EvaluationError


def test_text_from_outside_cannot_run_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scalar_evaluator.MOST_STEPS <= 1_000_000
    monkeypatch.setattr(scalar_evaluator, "MOST_STEPS", 10_000)
    hundred = str(list(range(100)))
    source = "true"
    for at in range(3):
        source = f"{hundred}.all(x{at}, {source})"
    with pytest.raises(EvaluationError, match="too many steps"):
        evaluate(source, {})


@given(EXPRESSIONS, st.dictionaries(st.sampled_from(["a", "b", "pod", "x_1"]), st.integers() | st.text(), max_size=3))
@settings(max_examples=150)
def test_any_expression_has_a_value_or_an_evaluation_error(tree: Any, bindings: dict[str, Any]) -> None:
    try:
        evaluate(printed(tree), bindings)
    except EvaluationError as error:
        assert str(error)


@given(st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_a_typed_expression_never_yields_a_value_outside_its_type(data: st.DataObject) -> None:
    source = data.draw(sources(where=ALONE))
    assume(not wrong(source))  # constants that overflow are refused
    expr = let(source)
    try:
        value = evaluated(expr, Anything(data.draw))
    except EvaluationError:
        return
    assert is_of(value, expr.type)


def test_a_default_that_is_not_needed_is_not_evaluated() -> None:
    assert evaluate("optional.of(1).orValue(1 / 0)") == 1
    assert evaluate("optional.of(1).or(optional.of(1 / 0)).value()") == 1
    with pytest.raises(EvaluationError):
        evaluate("optional.none().orValue(1 / 0)")


@pytest.mark.parametrize(("written", "value"), [("0.3Ki", 308), ("-0.3Ki", -308), ("0.5m", 1), ("2.5m", 3)])
def test_an_amount_is_rounded_as_in_a_policy(written: str, value: int) -> None:
    assert evaluate(written, {}) == value
