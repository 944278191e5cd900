"""Which requirements over labels are valid, and what they match."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policyengine.cluster.objects import LabelSelector, SelectorRequirement
from policyengine.plugins.selectors.label_selector import (
    EVERYTHING,
    NOTHING,
    MalformedError,
    compile_pod_selector,
    parse_requirements,
    requirement,
)
from policyengine.simulator.api_server.reading.selectors import parse_labels
from policyengine.simulator.api_server.statuses import ApiError

VALUES = [None, "", "a", "b", "7", "-8", "9223372036854775808"]


@pytest.mark.parametrize(
    ("operator", "values", "matched"),
    [
        ("In", ("a", ""), ["", "a"]),
        ("NotIn", ("a", ""), [None, "b", "7", "-8", "9223372036854775808"]),
        ("Exists", (), VALUES[1:]),
        ("DoesNotExist", (), [None]),
        ("Gt", ("3",), ["7"]),
        ("Lt", ("7",), ["-8"]),
    ],
)
def test_an_operator_matches_values_and_the_lack_of_one(operator, values, matched):
    compiled = requirement(SelectorRequirement("k", operator, values), comparing=True)
    assert [value for value in VALUES if compiled.holds(value)] == matched


@pytest.mark.parametrize(
    ("key", "operator", "values", "problem"),
    [
        ("", "Exists", (), "`` is not a label key"),
        ("UPPER/name", "Exists", (), "`UPPER/name` is not a label key"),
        ("k", "In", (), "`k`: `In` needs at least one value"),
        ("k", "Exists", ("a",), "`k`: `Exists` takes no values"),
        ("k", "Gt", ("a",), "`k`: `Gt` needs exactly one integer"),
        ("k", "Near", (), "`k`: `Near` is not an operator"),
        ("k", "In", ("not a value",), "`k`: `not a value` is not a label value"),
    ],
)
def test_what_is_wrong_with_a_requirement_is_said(key, operator, values, problem):
    with pytest.raises(MalformedError) as raised:
        requirement(SelectorRequirement(key, operator, values), comparing=True)
    assert str(raised.value) == problem


def test_pods_are_not_compared_by_size_and_no_selector_selects_nothing():
    greater = LabelSelector(match_expressions=(SelectorRequirement("k", "Gt", ("1",)),))
    assert compile_pod_selector(greater) == "`k`: `Gt` is not an operator"
    assert (compile_pod_selector(None), compile_pod_selector(LabelSelector())) == (NOTHING, EVERYTHING)


PARTS = [
    "a",
    "x.io/b",
    "in",
    "notin",
    "!",
    "=",
    "==",
    "!=",
    "(",
    ")",
    ",",
    ", ",
    " ",
    "c-",
    "a/b/c",
    "B/a",
    "é",
    "7" * 64,
]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=9).map("".join))
@example("a in (b, c), !x.io/b")
@example("a,")
@example("!a=a")
def test_a_selector_is_read_as_the_api_server_reads_it(text: str) -> None:
    """The embedded one, whose parser follows labels.Parse token by token."""
    try:
        known = parse_labels(text).requirements
    except ApiError:
        known = None
    found = parse_requirements(text)
    assert (None if isinstance(found, str) else found) == (known or None)


@pytest.mark.parametrize("text", ["a=", "a", "!a", "a in", "", "a in (b", "a" * 100_000])
def test_a_selector_of_a_hundred_thousand_spaces_is_refused_and_holds_nobody_up(text: str) -> None:
    """Whoever writes a ConfigMap may write it into an annotation; a look at each for each would take minutes."""
    assert isinstance(parse_requirements(f"{text}{' ' * 100_000}("), str)
