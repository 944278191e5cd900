"""Which taints a toleration matches."""

from __future__ import annotations

import pytest

from policyengine.cluster.node_objects import Taint
from policyengine.cluster.pod_objects import Toleration
from policyengine.plugins.selectors.tolerations import tolerates

LEAST, MOST = str(-(2**63)), str(2**63 - 1)


@pytest.mark.parametrize(
    "number", ["", "-", "-0", "00", "01", "+1", "1.0", "1e3", " 1", "1\n", "0x1", "１", str(2**63), "9" * 10_000]
)
def test_what_is_no_integer_of_64_bits_in_its_shortest_form_compares_with_nothing(number: str) -> None:
    for operator, bound in (("Gt", LEAST), ("Lt", MOST)):
        assert not tolerates([Toleration("k", operator, bound)], Taint("k", number, "NoSchedule"))
        assert not tolerates([Toleration("k", operator, number)], Taint("k", "1", "NoSchedule"))
        assert not tolerates([Toleration("k", operator, number)], Taint("k", bound, "NoSchedule"))
