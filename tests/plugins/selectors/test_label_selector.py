"""Which requirements over labels are valid, and what they match."""

import pytest

from policyengine.cluster.objects import LabelSelector, SelectorRequirement
from policyengine.plugins.selectors.label_selector import EVERYTHING, NOTHING, compile_pod_selector, requirement

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
    assert not isinstance(compiled, str)
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
    assert requirement(SelectorRequirement(key, operator, values), comparing=True) == problem


def test_pods_are_not_compared_by_size_and_no_selector_selects_nothing():
    greater = LabelSelector(match_expressions=(SelectorRequirement("k", "Gt", ("1",)),))
    assert compile_pod_selector(greater) == "`k`: `Gt` is not an operator"
    assert (compile_pod_selector(None), compile_pod_selector(LabelSelector())) == (NOTHING, EVERYTHING)
