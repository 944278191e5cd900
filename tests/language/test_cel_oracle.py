"""`policyengine.evaluate` and Google's CEL give the same values, and fail together, on expressions drawn at random."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyengine.language.evaluate import EvaluationError, evaluate

cel = pytest.importorskip("cel_expr_python.cel", reason="cel-expr-python is not installed")

Texts = st.SearchStrategy[str]
FAILED = object()
BINDINGS: dict[str, Any] = {"n": 7, "d": 2.5, "s": "héllo", "b": True, "l": [3, 1, 2], "m": {"a": 1, "b": 2}}
DEPTH = 3


def _ints(depth: int) -> Texts:
    leaves = st.sampled_from(("0", "1", "-1", "2", "7", "n", "9223372036854775807", "-9223372036854775808"))
    if depth == 0:
        return leaves
    inner, words = _ints(depth - 1), _strings(depth - 1)
    return st.one_of(
        leaves,
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/%"), inner),
        st.builds("size({})".format, words),
        st.builds("{}.size()".format, _lists(depth - 1)),
        st.builds("({} ? {} : {})".format, _bools(depth - 1), inner, inner),
        st.builds("{}[{}]".format, _lists(depth - 1), inner),
        st.builds("m[{}]".format, words),
        st.builds("int({})".format, st.one_of(_doubles(depth - 1), st.sampled_from(("'12'", "'x'", "'-3'")))),
    )


def _doubles(depth: int) -> Texts:
    leaves = st.sampled_from(("0.0", "1.5", "-2.25", "1e10", "d", "0.1", "1e300"))
    if depth == 0:
        return leaves
    inner = _doubles(depth - 1)
    return st.one_of(
        leaves,
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("double({})".format, _ints(depth - 1)),
        st.builds("({} ? {} : {})".format, _bools(depth - 1), inner, inner),
    )


def _strings(depth: int) -> Texts:
    leaves = st.sampled_from(("''", "'a'", "'b'", "s", "'日本'", "'a b'"))
    if depth == 0:
        return leaves
    inner = _strings(depth - 1)
    return st.one_of(
        leaves,
        st.builds("({} + {})".format, inner, inner),
        st.builds("string({})".format, st.one_of(_ints(depth - 1), _bools(depth - 1))),
        st.builds("({} ? {} : {})".format, _bools(depth - 1), inner, inner),
    )


def _bools(depth: int) -> Texts:
    leaves = st.sampled_from(("true", "false", "b"))
    if depth == 0:
        return leaves
    inner = _bools(depth - 1)
    compared = st.one_of(
        *(
            st.builds("({} {} {})".format, side, st.sampled_from(("==", "!=", "<", "<=", ">", ">=")), side)
            for side in (_ints(depth - 1), _doubles(depth - 1), _strings(depth - 1))
        )
    )
    method = st.sampled_from(("startsWith", "endsWith", "contains", "matches"))
    macro = st.sampled_from(("all", "exists", "exists_one"))
    return st.one_of(
        leaves,
        compared,
        st.builds("({} {} {})".format, inner, st.sampled_from(("&&", "||")), inner),
        st.builds("!{}".format, inner),
        st.builds("{}.{}({})".format, _strings(depth - 1), method, st.sampled_from(("''", "'a'", "'l+'", "'^h'"))),
        st.builds("{}.{}(x, x {} {})".format, _lists(depth - 1), macro, st.sampled_from("<>"), _ints(depth - 1)),
        st.builds("({} in {})".format, _ints(depth - 1), _lists(depth - 1)),
        st.builds("({} in m)".format, _strings(depth - 1)),
        st.builds("type({}) == {}".format, _ints(depth - 1), st.sampled_from(("int", "double"))),
        st.builds("({} == {})".format, _lists(depth - 1), _lists(depth - 1)),
    )


def _lists(depth: int) -> Texts:
    leaves = st.sampled_from(("[]", "[1]", "[1, 2, 3]", "l"))
    if depth == 0:
        return leaves
    inner = _lists(depth - 1)
    return st.one_of(
        leaves,
        st.builds("[{}, {}]".format, _ints(depth - 1), _ints(depth - 1)),
        st.builds("({} + {})".format, inner, inner),
        st.builds("{}.map(y, y {} {})".format, inner, st.sampled_from("+*"), _ints(depth - 1)),
        st.builds("{}.filter(z, z {} {})".format, inner, st.sampled_from("<>"), _ints(depth - 1)),
    )


def _durations(depth: int) -> Texts:
    leaves = st.sampled_from(("duration('1s')", "duration('1h30m')", "duration('-250ms')", "duration('x')"))
    return (
        leaves if depth == 0 else st.builds("({} {} {})".format, leaves, st.sampled_from("+-"), _durations(depth - 1))
    )


def theirs(text: str) -> Any:
    kinds = cel.Type
    types = {"n": kinds.INT, "d": kinds.DOUBLE, "s": kinds.STRING, "b": kinds.BOOL, "l": kinds.DYN, "m": kinds.DYN}
    value = cel.NewEnv(variables=types).compile(text, disable_check=True).eval(data=BINDINGS)
    return FAILED if str(value.type()) == "ERROR" else plain(value)


def plain(value: Any) -> Any:
    value = value.value() if isinstance(value, cel.Value) else value
    return [plain(item) for item in value] if isinstance(value, list) else value


def ours(text: str) -> Any:
    try:
        return evaluate(text, BINDINGS)
    except EvaluationError:
        return FAILED


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.one_of(*(draw(DEPTH) for draw in (_ints, _doubles, _strings, _bools, _lists, _durations))))
def test_both_give_the_same_value(text: str) -> None:
    assert same(ours(text), theirs(text)), f"{text}: we say {ours(text)}, CEL {theirs(text)}"


def test_the_oracle_tells_values_from_failures() -> None:
    assert theirs("n + 1") == 8 and theirs("1 / 0") is FAILED and theirs("duration('1s')") == timedelta(seconds=1)
