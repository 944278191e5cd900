"""The pictures are well-formed SVG and draw every contestant and every point."""

import pytest

pytest.importorskip("matplotlib", reason="matplotlib, of the extra `benchmarks`, is not installed")

from xml.etree import ElementTree

from benchmarks.figures import Samples
from benchmarks.picture import NoPicture, svg
from benchmarks.records import Record
from tests.benchmarks.results import decided, ends, grown, run

SVG = "{http://www.w3.org/2000/svg}"


def texts(record: Record) -> set[str]:
    """Every text of the picture."""
    return {one.text or "" for one in ElementTree.fromstring(svg(record)).iter(f"{SVG}text")}


def test_a_run_is_drawn_over_time_and_in_order_for_each_contestant() -> None:
    record = ends(run("policyengine", 900.0), run("limit, watch", 1_900.0))
    found = texts(record)
    assert {"policyengine", "limit, watch", "kube-scheduler, recorded on a real server"} <= found
    assert {"peer-basic: 5,000 nodes, 10,000 pods, embedded server", "seconds since the first bind"} <= found
    assert {"run policyengine", "run limit, watch"} <= set(_ids(record))


def _ids(record: Record) -> list[str]:
    return [one.attrib["id"] for one in ElementTree.fromstring(svg(record)).iter(f"{SVG}g") if "id" in one.attrib]


def test_of_several_runs_the_median_is_drawn() -> None:
    one = svg(ends(*(run("policyengine", rate) for rate in (100.0, 900.0, 500.0))))
    assert one == svg(ends(run("policyengine", 500.0)))


def test_scale_is_drawn_against_nodes_and_against_pods_with_its_exponents() -> None:
    assert {"different pods: n^1.00", "identical pods: n^0.00", "nodes", "pods"} <= texts(grown())


@pytest.mark.parametrize("record", [ends(run("policyengine", 50.0, samples=Samples(50, 50, 50, 50, (50,))))])
def test_a_run_shorter_than_a_second_has_a_picture_too(record: Record) -> None:
    assert "policyengine" in texts(record)


def test_what_has_no_picture_says_what_has() -> None:
    with pytest.raises(NoPicture, match="no picture of `decisions`: a workload, `limit` and `scale` have one"):
        svg(decided("peer-basic", 50.0))
