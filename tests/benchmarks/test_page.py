"""docs/performance.md: every figure with its definition, every target computed, every picture there."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import bench
from benchmarks.extender import ExtenderFigures
from benchmarks.figures import Spread
from benchmarks.machine import this_machine
from benchmarks.measure import alone_record
from benchmarks.page import page, pictures
from benchmarks.page_targets import at_least, at_most, targets
from benchmarks.queue import QueueFigures
from benchmarks.records import Record
from tests.benchmarks.results import REAL, as_json, decided, ends, grown, held, run
from tests.commands.process import benchmarks


def rows(record: Record) -> dict[str, tuple[str, bool]]:
    """{what: (measured, met)} of the targets a record has."""
    lines = [line for line in targets([record]).splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {what: (measured, verdict == "met") for what, _, measured, verdict in cells}


def beside(rate: float, cpu: float = 4.0, deviation: float = 0.0) -> Record:
    ours = run("policyengine", rate, server=REAL, cpu_seconds=cpu, pods_per_node_deviation=deviation)
    return ends(ours, run("kube-scheduler", 100.0, server=REAL, cpu_seconds=10.0, pods_per_node_deviation=0.3))


@pytest.mark.parametrize(("rate", "met"), [(299.0, False), (300.0, True), (500.0, True)])
def test_three_times_kube_scheduler_s_rate_is_asked_of_peer_basic(rate: float, met: bool) -> None:
    found = rows(beside(rate))
    key = "peer-basic, 5,000 nodes, 10,000 pods, beside kube-scheduler: rate"
    assert found[key] == (f"{rate / 100:.2f} times, one run", met)


@pytest.mark.parametrize(("cpu", "met"), [(10.0, True), (10.1, False)])
def test_no_more_cpu_than_kube_scheduler_is_asked_of_peer_basic(cpu: float, met: bool) -> None:
    assert rows(beside(500.0, cpu))["peer-basic, 5,000 nodes, 10,000 pods, beside kube-scheduler: CPU"][1] is met


@pytest.mark.parametrize(("deviation", "met"), [(0.0, True), (0.3, True), (0.31, False)])
def test_pods_lie_as_evenly_as_kube_scheduler_s(deviation: float, met: bool) -> None:
    found = rows(beside(500.0, deviation=deviation))
    key = "peer-basic, 5,000 nodes, 10,000 pods, beside kube-scheduler: deviation of pods a node"
    assert found[key][1] is met


def test_a_median_says_of_how_many_runs() -> None:
    three = [run("policyengine", rate, server=REAL) for rate in (310.0, 290.0, 320.0)]
    found = rows(ends(*three, *(run("kube-scheduler", 100.0, server=REAL) for _ in range(3))))
    assert found["peer-basic, 5,000 nodes, 10,000 pods, beside kube-scheduler: rate"] == (
        "3.10 times, median of 3",
        True,
    )


def test_no_ratio_to_kube_scheduler_is_taken_on_the_embedded_server() -> None:
    record = ends(run("policyengine", 900.0), run("limit, watch, events", 1_000.0))
    assert not any("kube-scheduler" in what for what in rows(record))
    assert "times the rate of kube-scheduler" not in page([record])


@pytest.mark.parametrize(("rate", "met"), [(849.0, False), (850.0, True)])
def test_the_share_of_the_limit_is_of_the_client_that_watches_and_writes_events(rate: float, met: bool) -> None:
    record = ends(run("policyengine", rate), run("limit, watch", 9_000.0), run("limit, watch, events", 1_000.0))
    (found,) = [(measured, met) for what, (measured, met) in rows(record).items() if "share of" in what]
    assert found == (f"{rate / 10:.0f} %, one run", met)


def test_cpu_memory_and_start_have_targets() -> None:
    record = ends(run("policyengine", 900.0, cpu_ms_per_pod=0.51, first_bind_seconds=3.5, peak_mb=301.0))
    found = rows(record)
    assert [met for _, met in found.values()] == [False, False, False]
    record = ends(run("policyengine", 900.0, cpu_ms_per_pod=0.5, first_bind_seconds=2.9, peak_mb=299.0))
    assert [met for _, met in rows(record).values()] == [True, True, True]


def test_decisions_and_memory_have_targets() -> None:
    met = [decided("peer-basic", 49.0, 20_000.0), decided("peer-mixed", 990.0, 2_000.0), held(5_000, 50_000, 300.0)]
    assert all(ok for record in met for _, ok in rows(record).values())
    missed = [decided("peer-basic", 101.0, 19_999.0), decided("peer-mixed", 1_001.0, 1_999.0)]
    assert not any(ok for record in missed for _, ok in rows(record).values())
    assert rows(held(1, 2, 9_999.0)) == {}


def test_the_count_of_targets_met_is_the_count_of_the_rows() -> None:
    text = targets([beside(200.0), held(5_000, 50_000, 100.0)])
    met, of = map(int, re.search(r"(\d+) of (\d+) are met", text).groups())  # type: ignore[union-attr]
    assert (met, of) == (text.count("| met |"), text.count("| met |") + text.count("| **missed** |"))


def test_a_verdict_is_on_the_value_before_it_is_rounded() -> None:
    assert not at_most("x", 0.5, 0.5001, "ms", 2).met
    assert not at_least("x", 3, 2.999, "times", 2).met


def test_every_picture_has_a_file_and_every_file_a_place() -> None:
    records = [beside(500.0), grown(), held(5_000, 50_000, 100.0)]
    text = page(records, "performance")
    drawn = pictures(records)
    assert len(drawn) == 2 and all(one.startswith("<svg") for one in drawn.values())
    assert {f"performance/{name}" for name in drawn} == set(re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text))
    assert "![" not in page(records)


def test_every_table_of_the_page_is_as_wide_as_its_head() -> None:
    text = page([beside(500.0), ends(run("policyengine", 900.0)), decided("peer-basic", 49.0, 20_000.0), grown()])
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {line.count("|") for line in block.splitlines()}
        assert len(widths) == 1, block


def test_the_growth_and_what_was_given_up_are_told() -> None:
    text = page([grown()])
    assert "| different pods against nodes | 1.00 |" in text
    assert "Given up: 7 nodes, 8 pods: it says nothing for 120 s." in text


def met(record: Record) -> dict[str, bool]:
    """{what: whether it is met} of a part alone."""
    rows = re.findall(
        r"^\| ([^|]*) \| at (?:most|least)[^|]*\|[^|]*\| (met|\*\*missed\*\*) \|$", page([record]), re.MULTILINE
    )
    return {what: verdict == "met" for what, verdict in rows}


def test_the_queue_s_targets_are_computed() -> None:
    values = {one.name: 19.0 for one in fields(QueueFigures)} | {"pending": 100_000, "gang": 1_000, "gang_nodes": 5_000}
    good = QueueFigures(**values)  # type: ignore[arg-type]
    assert set(met(alone_record(good, "", "python -m benchmarks queue", this_machine())).values()) == {True}
    slow = replace(good, pop_us=20.1, decision_beside_refused_us=20.0)
    found = met(alone_record(slow, "", "python -m benchmarks queue", this_machine()))
    assert [what for what, verdict in found.items() if not verdict] == [
        "take the next one, 100,000 pending",
        "a decision beside 19.0 refused pods, slower by",
    ]


def test_the_extender_s_targets_are_computed() -> None:
    quick = Spread(4_000.0, 9_000.0, 12_000.0, 100)
    values: dict[str, object] = {one.name: 1.0 for one in fields(ExtenderFigures)}
    values |= {one.name: quick for one in fields(ExtenderFigures) if one.type == "Spread"}
    good = ExtenderFigures(**values)  # type: ignore[arg-type]
    assert set(met(alone_record(good, "", "python -m benchmarks extender", this_machine())).values()) == {True}
    late = replace(good, filter=replace(quick, p99=10_001.0))
    found = met(alone_record(late, "", "python -m benchmarks extender", this_machine()))
    assert list(found.values()).count(False) == 1


def test_results_of_another_version_are_told_in_one_line(tmp_path: Path) -> None:
    content = {"records": [as_json(beside(500.0))]}
    del content["records"][0]["figures"]["runs"][0]["created"]
    (tmp_path / "old.json").write_text(json.dumps(content))
    shown = CliRunner().invoke(bench, ("page", "--from", str(tmp_path / "old.json")))
    assert shown.exit_code == 2
    assert "was saved by another version: a result in it has no 'created'" in " ".join(shown.output.split())


def test_the_command_writes_the_page_and_its_pictures(tmp_path: Path) -> None:
    from benchmarks.records import save

    save(tmp_path / "results.json", [beside(500.0), grown()])
    shown = benchmarks("page", "--from", tmp_path / "results.json", "--plots", tmp_path / "performance")
    assert shown.code == 0, shown.err
    names = re.findall(r"\]\(performance/([^)]*)\)", shown.out)
    assert sorted(names) == sorted(one.name for one in (tmp_path / "performance").iterdir())
