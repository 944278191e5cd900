"""The pictures are well-formed, draw every contestant and every point, and stay within their frame."""

from xml.etree import ElementTree

import pytest

from benchmarks.figures import Samples
from benchmarks.picture import NoPicture, svg
from benchmarks.records import Record
from policyengine.simulator.drawing import COLOURS, round_ticks
from tests.benchmarks.results import ends, grown, held, run

SVG = "{http://www.w3.org/2000/svg}"


def drawn(record: Record) -> ElementTree.Element:
    root = ElementTree.fromstring(svg(record))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for x, y in points(root):
        assert 0 <= x <= width and 0 <= y <= height
    return root


def points(root: ElementTree.Element) -> list[tuple[float, float]]:
    found = [pair.split(",") for line in root.iter(f"{SVG}polyline") for pair in line.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in found]


def texts(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def test_a_run_is_drawn_over_time_and_by_percentile_for_each_contestant() -> None:
    root = drawn(ends(run("policyengine", 900.0), run("limit, watch", 1_900.0)))
    lines = [one.attrib["stroke"] for one in root.iter(f"{SVG}polyline")]
    assert [lines.count(colour) for colour in COLOURS[:2]] == [2, 2]
    found = texts(root)
    assert {"policyengine", "limit, watch", "kube-scheduler, recorded on a real server"} <= set(found)
    assert "peer-basic: 5,000 nodes, 10,000 pods, embedded server" in found
    assert {"2,000", "50 %", "seconds since the first bind"} <= set(found)


def test_a_faster_run_lies_higher() -> None:
    root = drawn(ends(run("policyengine", 900.0), run("limit, watch", 1_900.0)))
    over_time = list(root.iter(f"{SVG}polyline"))
    height = {one.attrib["stroke"]: float(one.attrib["points"].split()[0].partition(",")[2]) for one in over_time[1:3]}
    assert height[COLOURS[1]] < height[COLOURS[0]]


def test_of_several_runs_the_median_is_drawn() -> None:
    one = svg(ends(*(run("policyengine", rate) for rate in (100.0, 900.0, 500.0))))
    assert one == svg(ends(run("policyengine", 500.0)))


def test_scale_is_drawn_against_nodes_and_against_pods_with_its_exponents() -> None:
    root = drawn(grown())
    assert len(list(root.iter(f"{SVG}polyline"))) == 4
    assert len(list(root.iter(f"{SVG}circle"))) == 2 * (3 + 2)
    found = texts(root)
    assert {"different pods: n^1.00", "identical pods: n^0.00", "100,000", "nodes", "pods"} <= set(found)


def test_a_power_is_a_straight_line_in_logarithms() -> None:
    (line, *_) = drawn(grown()).iter(f"{SVG}polyline")
    (x0, y0), (x1, y1), (x2, y2) = (tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split())
    assert abs((y1 - y0) / (x1 - x0) - (y2 - y0) / (x2 - x0)) < 0.01


def test_a_run_shorter_than_a_second_has_a_picture_too() -> None:
    drawn(ends(run("policyengine", 50.0, samples=Samples(50, 50, 50, 50, 50, 50, (50,)))))


def test_a_run_slower_than_what_was_recorded_stays_within_the_frame() -> None:
    drawn(ends(run("policyengine", 5.0)))


def test_what_has_no_picture_says_what_has() -> None:
    with pytest.raises(NoPicture, match="no picture of `memory`: a workload, `limit` and `scale` have one"):
        svg(held(5_000, 50_000, 100.0))


@pytest.mark.parametrize(("most", "last"), [(0, 1), (1, 1), (7, 8), (1_900, 2_000), (2_001, 3_000)])
def test_an_axis_ends_at_a_round_number_not_below_the_most(most: int, last: int) -> None:
    ticks = round_ticks(most)
    assert ticks[-1] == last and ticks[0] == 0 and len(ticks) <= 6
