"""docs/performance.md: every figure with its definition, every target computed, every picture there."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import bench
from benchmarks.figures import Figure
from benchmarks.page import page, pictures, targets
from benchmarks.records import Record, save, this_machine
from tests.benchmarks.results import REAL, decided, ends, grown, rows, run
from tests.commands.process import benchmarks


def met(record: Record) -> dict[str, bool | None]:
    """{what: whether it is met} of the targets a record has."""
    return {row.what: row.met for row in targets([record])}


def beside(rate: float, events: float = 900.0, cpu: float = 4.0, workload: str = "peer-basic") -> Record:
    real = {"server": REAL, "workload": workload}
    ours = run("policyengine", rate, events_per_second=events, cpu_seconds=cpu, **real)
    return ends(ours, run("kube-scheduler", 100.0, cpu_seconds=10.0, **real))


def test_the_rate_beside_kube_scheduler_has_a_target_to_the_last_binding_and_to_the_last_event() -> None:
    name = "peer-basic, 5,000 nodes, 10,000 pods, beside kube-scheduler"
    assert met(beside(249.0, 200.0)) == {
        f"{name}: rate to the last binding": False,
        f"{name}: rate to the last event": True,
        f"{name}: CPU": True,
    }
    assert met(beside(250.0, 199.0, 10.1)) == {
        f"{name}: rate to the last binding": True,
        f"{name}: rate to the last event": False,
        f"{name}: CPU": False,
    }
    assert list(met(beside(599.0, 399.0, workload="peer-spread")).values()) == [False, False, True]
    assert list(met(beside(600.0, 400.0, workload="peer-spread")).values()) == [True, True, True]


def test_a_median_says_of_how_many_runs() -> None:
    three = [run("policyengine", rate, server=REAL) for rate in (310.0, 290.0, 320.0)]
    first, *_ = targets([ends(*three, *(run("kube-scheduler", 100.0, server=REAL) for _ in range(3)))])
    assert first.cells()[2] == "3.10 times, median of 3"


def test_no_ratio_to_kube_scheduler_is_taken_on_the_embedded_server() -> None:
    record = ends(run("policyengine", 900.0), run("limit, watch, events", 1_000.0))
    assert not any("kube-scheduler" in what for what in met(record))
    assert "times the rate of kube-scheduler" not in page([record])


@pytest.mark.parametrize(("first", "peak", "ok"), [(3.5, 301.0, False), (2.9, 299.0, True)])
def test_start_and_memory_have_targets(first: float, peak: float, ok: bool) -> None:
    record = ends(run("policyengine", 900.0, first_bind_seconds=first, peak_mb=peak))
    assert list(met(record).values()) == [ok, ok]


@pytest.mark.parametrize(
    ("workload", "median", "ok"),
    [
        ("peer-basic", 60.0, True),
        ("peer-basic", 60.1, False),
        ("peer-spread", 200.0, True),
        ("peer-mixed", 201.0, False),
    ],
)
def test_a_decision_has_a_target(workload: str, median: float, ok: bool) -> None:
    assert list(met(decided(workload, median)).values()) == [ok]
    assert met(decided(workload, median, "riya")) == {}


def test_a_verdict_is_on_the_value_before_it_is_rounded() -> None:
    assert Figure("x", 0.5001, "ms", at_most=0.5, digits=2).met is False
    assert Figure("x", 2.999, "times", at_least=3, digits=2).met is False
    assert Figure("x", 1.0, "ms").met is None


def test_the_count_of_targets_met_is_the_count_of_the_rows() -> None:
    lint = Figure("lint", 151.0, "ms", at_most=150)
    text = page([beside(250.0), rows("language", lint)]).partition("## On a real")[0]
    found = re.search(r"(\d+) of (\d+) are met", text)
    assert found is not None and (int(found[1]), int(found[2])) == (3, 4)
    assert len(re.findall(r"\| +met \|", text)) == 3 and text.count("**missed**") == 1


def test_the_page_shows_every_record_with_its_command_and_the_peer_s_figures() -> None:
    limit = ends(run("limit, watch", 3.0))
    text = page([beside(500.0), ends(run("policyengine", 900.0)), limit, decided("peer-basic", 49.0), grown()])
    for command in ("peer-basic", "decisions peer-basic", "scale"):
        assert f"`python -m benchmarks {command}`" in text, command
    assert re.search(r"\| \*kube-scheduler, recorded\* +\| +420 \|", text)
    assert "**5.00 times the rate of kube-scheduler** (9.00 times counted to the last event), at 0.40 times its" in text
    assert this_machine().cpu_model in text and text.endswith("\n")


def test_every_table_of_the_page_is_as_wide_as_its_head() -> None:
    text = page([beside(500.0), ends(run("policyengine", 900.0)), decided("peer-basic", 49.0), grown()])
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(line) for line in block.splitlines()}) == 1, block


def test_a_node_that_holds_too_much_is_told() -> None:
    text = page([ends(run("2 schedulers", 9.0, overcommitted=("node-1: 5 of 4 cpu",)), run("policyengine", 5.0))])
    assert "0 pods bound twice; nodes with more than they have: node-1: 5 of 4 cpu." in text


def test_the_growth_and_what_was_given_up_are_told() -> None:
    text = page([grown()])
    assert re.search(r"\| different pods against nodes \| +1\.00 \|", text)
    assert "Given up: 7 nodes, 8 pods: it says nothing for 120 s." in text


def test_results_of_another_version_are_told_in_one_line(tmp_path: Path) -> None:
    content = {"records": [beside(500.0).to_json()]}
    del content["records"][0]["figures"]["runs"][0]["created"]
    (tmp_path / "old.json").write_text(json.dumps(content))
    shown = CliRunner().invoke(bench, ("page", "--from", str(tmp_path / "old.json")))
    assert shown.exit_code == 2
    assert "was saved by another version: a result in it has no 'created'" in " ".join(shown.output.split())


def test_the_command_writes_the_page_and_its_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra `benchmarks`, is not installed")
    found = [beside(500.0), grown(), rows("language", Figure("lint", 1.0, "ms"))]
    save(tmp_path / "results.json", found)
    shown = benchmarks("page", "--from", tmp_path / "results.json", "--plots", tmp_path / "performance")
    assert shown.code == 0, shown.err
    names = re.findall(r"\]\(performance/([^)]*)\)", shown.out)
    assert sorted(names) == sorted(one.name for one in (tmp_path / "performance").iterdir())
    assert len(names) == 2 and set(names) == set(pictures(found))
    assert "![" not in page(found)
