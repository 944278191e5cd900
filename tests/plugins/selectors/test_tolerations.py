"""Which taints a toleration matches."""

from __future__ import annotations

import pytest

from policyengine.cluster.node_objects import Taint
from policyengine.cluster.pod_objects import Toleration
from policyengine.plugins.selectors.tolerations import tolerates

LEAST, MOST = str(-(2**63)), str(2**63 - 1)


@pytest.mark.parametrize(
    ("operator", "value", "taint", "matches"),
    [
        ("Equal", "5", "5", True),
        ("", "5", "05", False),
        ("Exists", "", "5", True),
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "5", False),
        ("Gt", "-5", "0", True),
        ("Gt", LEAST, MOST, True),
        ("Lt", MOST, LEAST, True),
        ("Gt", "9", "10", True),
        ("Near", "5", "5", False),
    ],
)
def test_operators(operator: str, value: str, taint: str, matches: bool) -> None:
    assert tolerates([Toleration("k", operator, value)], Taint("k", taint, "NoSchedule")) is matches


@pytest.mark.parametrize(
    "number", ["", "-", "-0", "00", "01", "+1", "1.0", "1e3", " 1", "1\n", "0x1", "１", str(2**63), "9" * 10_000]
)
def test_what_is_no_integer_of_64_bits_in_its_shortest_form_compares_with_nothing(number: str) -> None:
    for operator, bound in (("Gt", LEAST), ("Lt", MOST)):
        assert not tolerates([Toleration("k", operator, bound)], Taint("k", number, "NoSchedule"))
        assert not tolerates([Toleration("k", operator, number)], Taint("k", "1", "NoSchedule"))
        assert not tolerates([Toleration("k", operator, number)], Taint("k", bound, "NoSchedule"))


def test_key_and_effect_have_to_match_too() -> None:
    taint = Taint("k", "6", "NoSchedule")
    assert not tolerates([Toleration("j", "Gt", "5")], taint)
    assert not tolerates([Toleration("k", "Gt", "5", "NoExecute")], taint)
    assert tolerates([Toleration("k", "Gt", "5", "NoSchedule")], taint)
