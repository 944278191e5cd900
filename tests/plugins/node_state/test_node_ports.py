"""Which host ports cannot be had on one node."""

import pytest

from policyengine.plugins.node_state.node_ports import collide


@pytest.mark.parametrize(
    ("wanted", "taken", "expected"),
    [
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.2", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("0.0.0.0", "UDP", 80), ("0.0.0.0", "TCP", 80), False),
        (("0.0.0.0", "TCP", 81), ("0.0.0.0", "TCP", 80), False),
    ],
)
def test_ports_collide_by_protocol_port_and_ip(wanted, taken, expected):
    assert collide((wanted,), (("0.0.0.0", "TCP", 9), taken)) is expected
