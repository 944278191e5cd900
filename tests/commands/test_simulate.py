"""`policyengine simulate`: what it prints, and what it says to scenarios it cannot play."""

from __future__ import annotations

import json
import os
from errno import ENOSPC
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.main import cli
from policyengine.commands.reports.simulate_table import BARS, sparkline
from policyengine.recording.directory import RecordingDirectory
from tests.commands.process import policyengine

SCENARIO = """
name: a <small> day & night
nodes: [{name: n, count: 2, allocatable: {cpu: 4}}]
pods:
  - {name: web, count: 3, requests: {cpu: 1}, runs: 5min}
  - {name: wide, at: 1min, requests: {cpu: 9}}
expect:
  - {pods: web-*, boundWithin: 1s}
"""
FAILS = SCENARIO + "  - {pods: wide, on: n-0}\n"
CLOSED = 'policy "closed" { filter "never" { require pod.name == "x" else "closed today" } }'


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "day.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def simulate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["simulate", *map(str, arguments)])


def answer(*arguments: str | Path) -> dict[str, Any]:
    found = json.loads(simulate(*arguments, "-o", "json").stdout)
    assert isinstance(found, dict)
    return found


def test_the_table_shows_pods_nodes_load_queue_and_what_was_expected(scenario: Path) -> None:
    shown = simulate(scenario)
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.output.splitlines()]
    assert next(line for line in lines if line and line[0] == "default/web-0")[1:4] == ["0s", "1", "0s"]
    assert next(line for line in lines if line and line[0] == "default/wide")[1] == "1min"
    assert "0/2 nodes are available: 2 Insufficient cpu." in shown.output
    assert any(line[:1] == ["pending"] and set(line[1]) <= set(BARS) for line in lines)
    assert "4 pods, 3 bound in" in shown.output
    assert "passed  pods web-*, boundWithin 1s  3 pods" in shown.output


def test_json_has_pods_nodes_summary_series_and_verdicts(scenario: Path) -> None:
    found = answer(scenario)
    assert found["passed"] is True
    assert [pod["pod"] for pod in found["pods"]] == [f"default/{name}" for name in ("web-0", "web-1", "web-2", "wide")]
    assert found["pods"][0] | {"node": ""} == {
        "pod": "default/web-0",
        "template": "web",
        "created": 0.0,
        "attempts": 1,
        "bound": 0.0,
        "node": "",
        "waited": 0.0,
        "ended": 300.0,
        "state": "finished",
        "refusedBy": [],
        "message": "",
        "gang": None,
    }
    assert found["summary"]["states"] == {"finished": 3, "pending": 1}
    assert {node["node"] for node in found["nodes"]} == {"n-0", "n-1"}
    assert found["series"][0]["running"] == 3


def test_an_expectation_that_fails_ends_with_1(scenario: Path) -> None:
    scenario.write_text(FAILS, encoding="utf-8")
    shown = simulate(scenario)
    assert shown.exit_code == 1
    assert "failed  pods wide, on n-0  default/wide was never bound" in shown.output


@pytest.mark.parametrize("text", ["nodes: [{name: n}]\npods: [{name: p, at: 5m}]", "", "a: &x 1", "\x00"])
def test_a_bad_scenario_ends_with_2_and_one_message(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    ended = policyengine("simulate", path)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith(f"error: `{path}`: ")
    assert len(ended.err.splitlines()) == 1


def test_what_cannot_be_written_or_read_ends_with_2(scenario: Path, tmp_path: Path) -> None:
    assert policyengine("simulate", tmp_path / "absent.yaml").code == 2
    assert policyengine("simulate", scenario, "--svg", tmp_path / "absent" / "x.svg").code == 2
    assert policyengine("simulate", scenario, "--param", "a=1").code == 2
    assert policyengine("simulate").code == 2


def test_a_policy_of_the_command_line_serves_instead(scenario: Path, tmp_path: Path) -> None:
    policy = tmp_path / "closed.policy"
    policy.write_text(CLOSED, encoding="utf-8")
    found = answer(scenario, "--policy", policy)
    assert [one["name"] for one in found["policies"]] == ["closed"]
    assert found["pods"][0]["refusedBy"] == ["never"]
    assert "closed today" in found["pods"][0]["message"]


def test_the_seed_is_settable(scenario: Path) -> None:
    assert answer(scenario, "--seed", "7")["seed"] == 7


def test_the_schema_is_printed() -> None:
    shown = simulate("--schema")
    assert shown.exit_code == 0
    assert json.loads(shown.output)["title"] == "A scenario of policyengine simulate"


def test_the_picture_is_well_formed_and_draws_every_line(scenario: Path, tmp_path: Path) -> None:
    path = tmp_path / "day.svg"
    assert simulate(scenario, "--svg", path).exit_code == 0
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    lines = [one for one in root.iter() if one.tag.endswith("polyline")]
    texts = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert len(lines) == 3  # cpu, memory, pending pods
    assert "a <small> day & night" in texts
    assert {"100 %", "pending pods"} <= set(texts)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for line in lines:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_a_sparkline_shows_nothing_only_for_nothing() -> None:
    assert sparkline([0.0, 0.01, 0.5, 1.0, 2.0], 1.0) == f"{BARS[0]}{BARS[1]}{BARS[4]}{BARS[7]}{BARS[7]}"


def test_many_pods_are_shown_by_template(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("count: 3", "count: 40").replace("  - {pods: web-*, boundWithin: 1s}", "  []"))
    shown = simulate(scenario)
    assert "default/web-0" not in shown.output
    web = next(line.split() for line in shown.output.splitlines() if line.startswith("web "))
    assert web[:3] == ["web", "40", "40"]
    assert "wait because" in shown.output


DUMP = {
    "kind": "List",
    "items": [
        {"kind": "Node", "metadata": {"name": "a", "creationTimestamp": "2026-01-05T00:00:00Z"},
         "status": {"allocatable": {"cpu": "2", "pods": "9"}, "conditions": [{"type": "Ready", "status": "True"}]}},
        *({"kind": "Pod", "metadata": {"name": name, "namespace": "x", "creationTimestamp": "2026-01-05T02:00:00Z"},
           "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
          for name, node in (("old", "a"), ("new", ""))),
    ],
}  # fmt: skip


def pods_of(told: Result) -> dict[str, tuple[str, float | None]]:
    assert told.exit_code == 0, told.stderr
    return {pod["pod"]: (pod["node"], pod["bound"]) for pod in json.loads(told.stdout)["pods"]}


def test_it_begins_with_the_cluster_of_a_dump_and_the_scenario_comes_on_top(tmp_path: Path) -> None:
    dump, more = tmp_path / "dump.json", tmp_path / "more.yaml"
    dump.write_text(json.dumps(DUMP))
    more.write_text("nodes: [{name: big, at: 2min}]\npods: [{name: extra, at: 10s, requests: {cpu: 1}}]\n")
    alone = pods_of(simulate("--cluster", dump, "-o", "json"))
    assert alone == {"x/old": ("a", 0.0), "x/new": ("a", 0.0)}
    both = pods_of(simulate(more, "--cluster", dump, "-o", "json"))
    assert both == alone | {"default/extra": ("big", 120.0)}


def test_what_was_recorded_comes_again_and_the_scenario_on_top(scenario: Path, tmp_path: Path) -> None:
    kept, more = tmp_path / "kept", tmp_path / "more.yaml"
    first = pods_of(simulate(scenario, "--record", kept, "-o", "json"))
    assert pods_of(simulate("--recording", kept, "-o", "json")) == first
    more.write_text("duration: 1h\nnodes: [{name: big, allocatable: {cpu: 16}, at: 30min}]\npods: []\n")
    assert pods_of(simulate(more, "--recording", kept, "-o", "json")) == first | {"default/wide": ("big", 1800.0)}


def test_of_a_damaged_recording_what_could_be_read_is_played_and_the_exit_code_says_so(
    scenario: Path, tmp_path: Path
) -> None:
    simulate(scenario, "--record", tmp_path / "kept")
    (file,) = (tmp_path / "kept").glob("*.recording")
    file.write_bytes(file.read_bytes() + b"\xff" * 40)
    told = simulate("--recording", tmp_path / "kept")
    assert (told.exit_code, told.stderr[:31]) == (2, "note: 000001.recording: frame 2")
    assert "default/web-0" in told.stdout


def test_a_disk_that_is_full_ends_a_simulation_that_is_recorded(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = [OSError(ENOSPC, os.strerror(ENOSPC))]  # what is left to write in the end is little, and has room

    def put(directory: RecordingDirectory, file: object, written: bytes) -> None:
        if full:
            raise full.pop()

    monkeypatch.setattr(RecordingDirectory, "_put", put)
    monkeypatch.setattr("policyengine.recording.recorder.FRAME", 1)
    told = simulate(scenario, "--record", tmp_path / "kept")
    assert (told.exit_code, told.stderr) == (2, f"Error: cannot write `{tmp_path}/kept`: no space left on device\n")


def test_the_policies_that_served_are_those_of_the_recording_unless_others_are_named(
    scenario: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "closed.policy"
    closed.write_text(CLOSED.replace("{ filter", '{ scheduler "default-scheduler" filter'))
    simulate(scenario, "--record", tmp_path / "kept", "--policy", closed)
    assert {node for node, _ in pods_of(simulate("--recording", tmp_path / "kept", "-o", "json")).values()} == {None}
    told = simulate(scenario, "--recording", tmp_path / "kept", "-o", "json")
    assert told.exit_code in (0, 1)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ([], "give a SCENARIO, --cluster or --recording"),
        (["--cluster", "a", "--recording", "b"], "give one of --cluster and --recording"),
        (["--recording", "nothing"], "cannot read `nothing`: no such file or directory"),
    ],
)
def test_what_it_cannot_begin_with_is_one_sentence(flags: list[str], why: str) -> None:
    told = simulate(*flags)
    assert (told.exit_code, told.stderr.splitlines()[-1]) == (2, f"Error: {why}")
