"""Mean and deviation of samples; which node a measured instance is."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.server.annotator.measurement import BadPattern, MeasuredNode, Naming, by_instance, statistics_of
from tests.server.annotator.world import node

finite = st.floats(-1e12, 1e12)


def test_mean_and_deviation_are_those_of_the_sample() -> None:
    found = statistics_of([(0.0, 2.0), (30.0, 4.0), (60.0, 9.0)])
    assert found is not None
    # (3² + 1² + 4²) / (3 - 1) = 13
    assert (found.mean, found.deviation, found.forecast) == (5.0, math.sqrt(13.0), None)
    assert (found.last, found.at) == (9.0, 60.0)


def test_a_single_sample_deviates_by_nothing() -> None:
    found = statistics_of([(0.0, 7.0)], forecast=6.0)
    assert found is not None and (found.deviation, found.forecast) == (0.0, 6.0)


def test_what_is_not_a_number_is_no_sample() -> None:
    found = statistics_of([(0.0, 2.0), (1.0, math.nan), (2.0, math.inf), (3.0, 4.0), (4.0, -math.inf)])
    assert found is not None and (found.mean, found.at) == (3.0, 3.0)
    assert statistics_of([(0.0, math.nan)]) is None and statistics_of([]) is None
    assert statistics_of([(0.0, 1e308), (1.0, 1e308), (2.0, -1e20)]) is None  # no node has as much


@given(st.lists(finite, min_size=1, max_size=50))
def test_they_are_those_of_the_library(values: list[float]) -> None:
    found = statistics_of([(30.0 * number, value) for number, value in enumerate(values)])
    assert found is not None
    room = 1e-9 * max(1.0, *map(abs, values))
    assert found.mean == pytest.approx(statistics.fmean(values), abs=room)
    assert found.deviation == pytest.approx(statistics.stdev(values) if len(values) > 1 else 0.0, rel=1e-6, abs=room)


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
