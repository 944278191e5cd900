"""Which node a measured instance is."""

import pytest

from policyengine.server.annotator.measurement import BadPattern, MeasuredNode, Naming, by_instance
from tests.server.annotator.world import node


@pytest.mark.parametrize(
    ("labels", "instance"),
    [
        ({"node": "n1", "instance": "10.0.0.1:9100"}, "n1"),
        ({"node": "", "instance": "10.0.0.1:9100"}, "10.0.0.1"),
        ({"instance": "[fd00::1]:9100"}, "fd00::1"),
        ({"instance": "fd00::1"}, "fd00::1"),
        ({"instance": "n1.example.com"}, "n1.example.com"),
        ({"job": "x"}, ""),
    ],
)
def test_the_first_label_there_names_it_without_its_port(labels: dict[str, str], instance: str) -> None:
    assert Naming().instance(labels) == instance


def test_a_pattern_takes_its_group_and_leaves_what_it_does_not_match() -> None:
    naming = Naming(("nodename",), r"ip-(.+)\.example\.com:\d+")
    assert naming.instance({"nodename": "ip-n7.example.com:9100"}) == "n7"
    assert naming.instance({"nodename": "n8:9100"}) == "n8"
    assert Naming(pattern="n[0-9]+").instance({"node": "n7"}) == "n7"


def test_a_pattern_that_is_none_is_told() -> None:
    with pytest.raises(BadPattern, match=r"`\(` is no regular expression"):
        Naming(pattern="(")


def test_a_name_beats_another_nodes_address() -> None:
    nodes: list[MeasuredNode] = [node("a", addresses=["10.0.0.1", "b"]), node("b", addresses=["10.0.0.2"])]
    assert by_instance(nodes) == {"10.0.0.1": "a", "10.0.0.2": "b", "a": "a", "b": "b"}
