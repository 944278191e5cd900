"""Values from outside for params: what is converted, and what is refused how."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.compiler.params import ParamError, convert, wrong_values
from policyengine.language import ir
from policyengine.language.diagnostics import Source
from policyengine.language.syntax import Span
from policyengine.language.types import (
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    INT,
    MEMORY,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    optional_of,
)
from policyengine.language.values import NONE, Optional
from policyengine.policy_compiler import compile_files, compile_text


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        ("4Gi", MEMORY, 4 << 30),
        ("500m", CPU, 500),
        (2, CPU, 2000),
        ("0.3Ki", MEMORY, 308),
        ("-1.5Gi", MEMORY, -3 << 29),
        ("0.1m", CPU, 1),
        ("5min", DURATION, 300 * 10**9),
        ("-1.5s", DURATION, -15 * 10**8),
        ("true", BOOL, True),
        ("7", INT, 7),
        ("-0x10", INT, -16),
        ("010", INT, 10),
        ("1e3", DOUBLE, 1000.0),
        ("0.5", DOUBLE, 0.5),
        ("2026-01-05T18:30:00Z", TIMESTAMP, 1767637800 * 10**9),
        (["a", "b"], list_of(STRING), ["a", "b"]),
        ('["1Gi", "2Gi"]', list_of(MEMORY), [1 << 30, 2 << 30]),
        ({"a": "2", "b": 1}, map_of(STRING, CPU), {"a": 2000, "b": 1000}),
        ('{"1": ["5s"]}', map_of(INT, list_of(DURATION)), {1: [5 * 10**9]}),
        ("null", optional_of(INT), NONE),
        (None, optional_of(INT), NONE),
        ("3", optional_of(INT), Optional(3)),
    ],
)
def test_a_value_becomes_what_its_type_holds(value: object, type_: Type, expected: object) -> None:
    assert convert(value, type_, "x") == expected


@pytest.mark.parametrize(("value", "shown"), [(None, "null"), (True, "true")])
def test_what_is_wrong_is_shown_as_yaml_writes_it(value: object, shown: str) -> None:
    with pytest.raises(ParamError, match=f"`{shown}` is not a value of type `int`"):
        convert(value, INT, "x")


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("5m", DURATION),
        ("5m", MEMORY),
        ("1Ki", CPU),
        ("9Ei", MEMORY),
        ("1e999999999", MEMORY),
        ('{"a": 1, "a": 2}', map_of(STRING, INT)),
        (5, DURATION),
        ("yes", BOOL),
        (True, INT),
        ("1.5", INT),
        ("nan", DOUBLE),
        (5, STRING),
        ("[1", list_of(INT)),
        ("1", list_of(INT)),
        ("[" * 5000, list_of(INT)),
        ('["x"]', list_of(INT)),
        ("[]", map_of(STRING, INT)),
        (str(2**63), INT),
        ("much", MEMORY),
        *(
            (text, type_)
            for text in ("٣", "1_0", "+7", " 7", "7\n", "0x", "--7", "", "9" * 6000)
            for type_ in (INT, DOUBLE, CPU)
            if (text, type_) != ("+7", CPU)  # a Kubernetes quantity
        ),
        ("5.", DOUBLE),
        ("1e999", DOUBLE),
        (10**400, DOUBLE),
        ("\ud800", STRING),
        ('["\\ud800"]', list_of(STRING)),
        ({"\ud800": 1}, map_of(STRING, INT)),
    ],
)
def test_a_value_of_another_type_is_refused_with_both_named(value: object, type_: Type) -> None:
    with pytest.raises(ParamError) as refused:
        convert(value, type_, "x")
    assert str(refused.value).startswith("parameter `x`: `")
    assert str(refused.value).endswith(f"is not a value of type `{type_}`")
    assert len(str(refused.value).encode()) < 400


def test_an_int_of_more_digits_than_python_writes_is_refused() -> None:
    with pytest.raises(ParamError, match="`a very long number` is not a value of type `int`"):
        convert(10**6000, INT, "x")


ANY_TEXT = st.text(st.characters()) | st.from_regex(r"\A[-+]?[0-9_٣x.eE]*\Z")
"""Half characters too."""
TYPES = [INT, DOUBLE, STRING, CPU, DURATION, TIMESTAMP]


@given(
    st.recursive(
        ANY_TEXT | st.integers(-(10**400), 10**400) | st.floats() | st.none() | st.booleans(),
        lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    ),
    st.sampled_from(TYPES).flatmap(lambda one: st.sampled_from([one, list_of(one), map_of(STRING, one)])),
)
def test_no_value_does_worse_than_be_refused(value: object, type_: Type) -> None:
    try:
        str(convert(value, type_, "x")).encode()
    except ParamError as refused:
        str(refused).encode()


def param(name: str, **more: object) -> ir.Param:
    return ir.Param(name=name, type=INT, default=1, span=Span(0, 0), **more)  # type: ignore[arg-type]


def test_every_wrong_value_is_told() -> None:
    params = [param("a", minimum=0, maximum=5), param("b", values=(1, 2)), param("c")]
    wrong = wrong_values(params, {"a": 9, "b": 3, "c": "x", "d": 1, "\ud800\x1b": 1})
    assert list(wrong) == ["a", "b", "c", "d", "\ud800\x1b"]
    assert wrong["\ud800\x1b"].startswith("`��` is no parameter")
    assert "outside the range" in wrong["a"]
    assert "is not among the values" in wrong["b"]
    assert "no parameter" in wrong["d"]


def test_values_reach_every_policy_that_has_the_param() -> None:
    texts = (f'policy "{name}" {{ scheduler "{name}" param {name}: int = 1 param all: int = 1 }}' for name in "pq")
    sources = [Source(name, text) for name, text in zip("pq", texts, strict=True)]
    assert not compile_files(sources, {"p": 2, "q": 2, "all": 2}).diagnostics
    (found,) = compile_files(sources, {"r": 2}).diagnostics
    assert "no parameter" in found.message


def test_a_param_of_a_list_is_set_from_outside() -> None:
    text = 'policy "p" { param zones: list(string) = ["a"] filter "f" { require node.zone in zones } }'
    one, other = (compile_text(text, params={"zones": value}).profiles[0] for value in (["b"], '["b"]'))
    assert one.policy_hash == other.policy_hash != compile_text(text).profiles[0].policy_hash


@pytest.mark.parametrize("type_", [DURATION, CPU, MEMORY])
def test_an_amount_of_a_hundred_thousand_digits_is_refused_and_holds_nobody_up(type_: Type) -> None:
    with pytest.raises(ParamError):
        convert("1" * 100_000 + "x", type_, "p")
