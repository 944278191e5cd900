"""The function table: what functions answer, and that every row of it keeps the table's rules."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.language.evaluate import EvaluationError, evaluate
from policyengine.language.functions import FUNCTIONS, Function
from policyengine.language.functions.answer_bounds import Interval
from policyengine.language.functions.numeric import deviation, total
from policyengine.language.functions.probability import beta_cdf, hash_string, mix, random
from policyengine.language.lint.cost import MICROSECONDS
from policyengine.language.values import Duration, Timestamp, format_double, parse_duration, parse_timestamp

ANSWERS: list[tuple[str, Any]] = [
    # numbers
    ("ratio(1, 4)", 0.25),
    ("ratio(5, 4)", 1.0),
    ("ratio(-1, 4)", 0.0),
    ("ratio(1, 0)", 0.0),
    ("ratio(500m, 2000m)", 0.25),
    ("clamp(5, 0, 3)", 3),
    ("clamp(-5.0, 0.0, 3.0)", 0.0),
    ("min(3, 1, 2)", 1),
    ("max(3.0, 1.0)", 3.0),
    ("[3, 1, 2].max()", 3),
    ("[1, 2].sum()", 3),
    ("[1, 2].avg()", 1.5),
    ("[1.0, 3.0].stddev()", 1.0),
    ("abs(-3)", 3),
    ("floor(-1.5)", -2),
    ("ceil(-1.5)", -1),
    ("round(2.5)", 3),
    ("round(-2.5)", -3),
    ("round(0.49999999999999994)", 0),
    ("sqrt(9.0)", 3.0),
    ("sqrt(-1.0) == sqrt(-1.0)", False),
    ("ln(0.0)", -math.inf),
    ("exp(1000.0)", math.inf),
    ("pow(2.0, 10.0)", 1024.0),
    ("-7 / 2", -3),
    ("-7 % 2", -1),
    ("7 % -2", 1),
    # quantities and durations scale
    ("500m * 3 == 1500m", True),
    ("1000m / 2 == 500m", True),
    ("3m / 2 == 2m", True),
    ("5m / 2 == 2m", True),
    ("1Gi / 512Mi", 2.0),
    ("2Gi * 0.5 == 1Gi", True),
    ("3 * 1s == 3s", True),
    ("1h / 90s", 40.0),
    ("double(1500m)", 1.5),
    # strings
    ("'a-b-c'.split('-')", ["a", "b", "c"]),
    ("'a-b-c'.split('-', 2)", ["a", "b-c"]),
    ("'abc'.split('')", ["a", "b", "c"]),
    ("'abc'.split('', 2)", ["a", "bc"]),
    ("['a', 'b'].join('+')", "a+b"),
    ("'abc'.substring(1)", "bc"),
    ("'abc'.substring(1, 2)", "b"),
    ("'abcb'.indexOf('b')", 1),
    ("'abcb'.indexOf('b', 2)", 3),
    ("'abcb'.lastIndexOf('b')", 3),
    ("'abcb'.lastIndexOf('b', 2)", 1),
    ("'abc'.charAt(3)", ""),
    ("'aaa'.replace('a', 'b', 2)", "bba"),
    ("'ÄbC'.lowerAscii()", "Äbc"),
    ("'äbC'.upperAscii()", "äBC"),
    ("' \\u00a0a '.trim()", "a"),
    ("trailingInt('node9').orValue(0)", 9),
    ("trailingInt('node').hasValue()", False),
    ("trailingInt('node99999999999999999999').hasValue()", False),
    # conversions
    ("int('-12')", -12),
    ("toInt('12').orValue(0)", 12),
    ("toInt('12x').orValue(0)", 0),
    ("toInt({'a': '7'}[?'a']).orValue(0)", 7),
    ("toInt({'a': '7'}[?'b']).orValue(0)", 0),
    ("toDouble('nan').hasValue()", False),
    ("toQuantity('1500m', cpu).orValue(0m) == 1500m", True),
    ("toQuantity('lots', memory).hasValue()", False),
    ("toDuration('1h30m').orValue(0s) == 90min", True),
    ("toTimestamp('yesterday').hasValue()", False),
    ("string(2Gi)", "2Gi"),
    ("string(timestamp('2026-01-05T18:30:00+01:00'))", "2026-01-05T17:30:00Z"),
    ("string(true)", "true"),
    # time
    ("timestamp('2026-01-05T23:30:00Z').getHours()", 23),
    ("timestamp('2026-01-05T23:30:00Z').getHours('Europe/Berlin')", 0),
    ("string(90s)", "90s"),
    ("timestamp('2026-01-05T23:30:00Z').getDayOfWeek()", 1),
    ("timestamp('2026-01-05T23:30:00Z').getDate('+01:00')", 6),
    ("timestamp('2026-02-05T00:00:00Z').getMonth()", 1),
    ("timestamp('2026-02-01T00:00:00Z').getDayOfYear()", 31),
    ("timestamp('2026-01-01T00:00:00.123Z').getMilliseconds()", 123),
    ("duration('-90s').getMinutes()", -1),
    ("timestamp(0) + 1d == timestamp('1970-01-02T00:00:00Z')", True),
    ("timestamp('2026-01-05T23:30:07Z').getFullYear()", 2026),
    ("timestamp('2026-01-05T23:30:07Z').getDayOfMonth()", 4),
    ("timestamp('2026-01-05T23:30:07Z').getSeconds()", 7),
    ("size('äb')", 2),
    ("'abc'.contains('b')", True),
    ("'abc'.startsWith('b')", False),
    ("'abc'.endsWith('c')", True),
    ("hash('a') == hash('a')", True),
    ("optional.ofNonZeroValue(0).hasValue()", False),
]


@pytest.mark.parametrize(("source", "answer"), ANSWERS)
def test_a_function_answers(source: str, answer: Any) -> None:
    value = evaluate(source, {})
    assert (type(value), value) == (type(answer), answer)


def test_a_history_is_what_the_pods_that_were_placed_say_of_the_label() -> None:
    class Placed:
        def of(self, labels: dict[str, str], label: str, smoothing: float) -> object:
            return labels, label, smoothing

    (overload,) = FUNCTIONS["history"].overloads
    assert overload.implementation(Placed(), {"app": "web"}, "app", 0.5) == ({"app": "web"}, "app", 0.5)
    with pytest.raises(EvaluationError, match=r"a smoothing is from 0 to 1, not 1\.5"):
        overload.implementation(Placed(), {}, "", 1.5)


def test_a_pod_group_is_asked_for_by_namespace_and_name() -> None:
    class Groups:
        def named(self, namespace: str, name: str) -> object:
            return f"{namespace}/{name}" if name else None

    (overload,) = FUNCTIONS["podGroup"].overloads
    assert overload.implementation(Groups(), "ns", "g") == "ns/g"
    assert overload.implementation(Groups(), "ns", "") is None


def test_every_function_that_has_a_name_is_asked_here() -> None:
    here = Path(__file__)
    texts = [here.read_text(), here.with_name("test_kubernetes_functions.py").read_text()]
    texts.append(here.with_name("test_evaluate.py").read_text())
    asked = set(re.findall(r"\w+", "".join(texts)))
    named = {
        re.split(r"[./]", row.name)[-1 if "." in row.name else 0] for row in FUNCTIONS.values() if row.name[0].isalpha()
    }
    assert named - asked == set()


FAILURES = [
    ("round(0.0 / 0.0)", "not a finite number"),
    ("floor(1e300)", "integer overflow"),
    ("abs(-9223372036854775808)", "integer overflow"),
    ("[9223372036854775807, 1].sum()", "integer overflow"),
    ("'abc'.substring(2, 1)", "out of range"),
    ("'abc'.charAt(4)", "out of range"),
    ("betaCdf(0.5, 0.0, 1.0)", "positive a and b"),
    ("'x'.matches('(')", "is not a pattern of RE2"),
    ("timestamp('2300-01-01T00:00:00Z')", "out of range: times are from 1677-09-21 to 2262-04-11"),
    ("timestamp('2026-02-30T00:00:00Z')", "is not a time"),
    ("bool('yes')", "is not a bool"),
    ("lowerAscii('A')", "no function"),
    ("'A'.abs()", "no function"),
    ("1 + 'a'", "`+` does not take int, string"),
]


@pytest.mark.parametrize(("source", "fragment"), FAILURES)
def test_a_function_without_an_answer_says_why(source: str, fragment: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(source, {})
    assert fragment in str(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_a_functions_record_says_everything(function: Function) -> None:
    assert function.doc
    signatures = [overload.parameters for overload in function.overloads]
    assert len(set(signatures)) == len(signatures) > 0
    assert isinstance(function.bounds, Interval) or callable(function.bounds) or function.bounds.reason
    assert function.cost.operation in MICROSECONDS
    for other in function.mutants:
        assert {one.parameters for one in FUNCTIONS[other].overloads} & set(signatures)


BETA = [
    # x, a, b, and what scipy 1.17 answers
    (0.5, 2, 2, 0.5),
    (0.1, 0.5, 0.5, 0.20483276469913345),
    (0.9, 0.05, 0.05, 0.5505309088521866),
    (0.25, 1, 3, 0.578125),
    (0.9, 12.5, 3.75, 0.9191448283460582),
    (0.35, 80, 80, 5.254470406937504e-05),
    (0.5, 400, 410, 0.6374119181464607),
    (0.02, 1.5, 60, 0.5127320647054951),
    (0.999, 95, 0.015, 0.027873903776355548),
    (1e-06, 0.01, 5, 0.8892360083175224),
    (0.3, 3000, 7000, 0.5011607691362496),
    (0.7, 70000, 30100, 0.6850190257523143),
]


@pytest.mark.parametrize(("x", "a", "b", "share"), BETA)
def test_beta_cdf_is_good_to_nine_digits(x: float, a: float, b: float, share: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(share, abs=1e-9)


@given(st.integers(0, 1024), st.floats(0.05, 80), st.floats(0.05, 80))
def test_beta_cdf_mirrors_itself(part: int, a: float, b: float) -> None:
    x = part / 1024
    assert beta_cdf(x, a, b) == pytest.approx(1.0 - beta_cdf(1.0 - x, b, a), abs=1e-12)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32)), st.randoms())
def test_the_order_of_doubles_shows_in_no_sum(values: list[float], chance: Any) -> None:
    mixed = list(values)
    chance.shuffle(mixed)
    assert total(mixed) == total(values)
    assert deviation(mixed) == deviation(values)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_from_its_text(value: float) -> None:
    assert float(format_double(value)) == value


@given(st.integers(-(2**62), 2**62))
def test_a_duration_and_a_time_read_back_from_their_text(nanoseconds: int) -> None:
    for kind, read in ((Duration, parse_duration), (Timestamp, parse_timestamp)):
        text = evaluate("string(x)", {"x": kind(nanoseconds)})
        assert isinstance(text, str) and read(text) == nanoseconds


def test_hash_and_random_are_the_same_everywhere() -> None:
    assert hash_string("node-1") == 1510344551940467655
    assert mix(0) == 0xE220A8397B1DCDAF  # the first output of splitmix64 seeded with 0
    assert random("uid", "node-1", "rule", "") == random("uid", "node-1", "rule", "")
    assert len({random("uid", f"node-{at}", "rule", "") for at in range(1000)}) == 1000


@given(st.text(), st.text(), st.text(), st.text())
def test_random_lies_within_0_and_1(uid: str, node: str, rule: str, stream: str) -> None:
    assert 0.0 <= random(uid, node, rule, stream) < 1.0
