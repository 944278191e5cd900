"""`policyengine plan`: what it prints, and when it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.main import cli
from policyengine.recording.directory import RecordingDirectory
from policyengine.recording.encoding import Began
from policyengine.recording.recorder import Recorder
from policyengine.scheduler.messages import CacheSynced, Message, NodeObserved, PodDeleted, PodObserved
from tests.builders import PodBuilder, make_node, make_pod

OLD = 'policy "old" { scheduler "default-scheduler" base filters }\n'
NEW = """policy "new" { scheduler "default-scheduler" base filters
  filter "two" { require node.podCount < 2 else "two pods are enough" }
}"""
LIBRARY = 'library "sizes" { let few = 2 }'
SCENARIO = """
duration: 10min
policies: [{text: 'policy "old" { scheduler "default-scheduler" base filters }'}]
nodes: [{name: n, count: 2, allocatable: {cpu: 4}}]
pods: [{name: web, count: 6, every: 10s, requests: {cpu: 1}}]
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("old.policy", OLD), ("new.policy", NEW), ("lib.policy", LIBRARY), ("day.yaml", SCENARIO)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    pods: list[Any] = [
        make_pod(f"p{number}").req(cpu="1").created(f"2026-01-05T10:00:0{number}Z") for number in range(3)
    ]
    pods += [make_pod(f"r{number}").req(cpu="1").node("a").created("2026-01-05T09:00:00Z") for number in range(2)]
    nodes = [make_node("a").allocatable(cpu="4", pods="10"), make_node("b").allocatable(cpu="1", pods="10")]
    items = [one.json() for one in (*nodes, *pods)]
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return tmp_path


def plan(files: Path, *arguments: str) -> Result:
    given = [str(files / one) if "." in one and (files / one).exists() else one for one in arguments]
    return CliRunner().invoke(cli, ["plan", *given])


def test_a_scenario_under_both(files: Path) -> None:
    found = plan(files, "new.policy", "--scenario", "day.yaml")
    assert found.exit_code == 0, found.output
    lines = [line.split() for line in found.stdout.splitlines()]
    assert lines[0][:2] == ["old", "old"]
    assert lines[1][:2] == ["new", "new"]
    assert ["waiting", "0", "2", "worse"] in lines
    assert "two pods are enough" in found.stdout
    assert plan(files, "new.policy", "--scenario", "day.yaml", "--fail-on", "waiting > old").exit_code == 1


def test_a_recording_under_both(files: Path) -> None:
    kept = str(files / "kept")
    CliRunner().invoke(cli, ["simulate", str(files / "day.yaml"), "--record", kept])
    page = json.loads(plan(files, "new.policy", "--recording", kept, "-o", "json").stdout)
    assert page["about"] == "6 pods over 10min of recording kept"
    assert (page["old"]["waiting"], page["new"]["waiting"]) == (0, 2)
    assert page["newlyWaiting"]["count"] == 2
    assert page["refusedBy"] == {"two": {"old": 0, "new": 2}}


def test_of_a_damaged_recording_what_could_be_read_is_played_and_the_exit_code_says_so(files: Path) -> None:
    recorded(files, PodObserved(make_pod("p").req(cpu="1").build()))
    (file,) = (files / "kept").glob("*.recording")
    file.write_bytes(file.read_bytes() + b"\xff" * 40)
    told = plan(files, "new.policy", "--recording", str(files / "kept"), "-o", "json")
    assert told.exit_code == 2
    page = json.loads(told.stdout)
    assert (page["old"]["placed"], page["new"]["placed"]) == (1, 1)
    assert page["notes"] == ["000001.recording: frame 2 is damaged: its length cannot be"]


def test_pods_without_a_uid_are_told_apart(files: Path) -> None:
    one = make_pod("p").req(cpu="1").uid("").build()
    recorded(files, PodObserved(one), PodDeleted("default", "p"), PodObserved(one))
    page = json.loads(plan(files, "new.policy", "--recording", str(files / "kept"), "-o", "json").stdout)
    assert (page["new"]["pods"], page["new"]["placed"]) == (2, 2)


@pytest.mark.parametrize(
    ("pods", "there"), [([], "none"), ([make_pod("p").set("spec.schedulerName", "gpu")], "1 for `gpu`")]
)
def test_a_recording_without_a_pod_that_the_policies_serve_is_refused(
    files: Path, pods: list[PodBuilder], there: str
) -> None:
    recorded(files, *(PodObserved(pod.build()) for pod in pods))
    told = plan(files, "new.policy", "--recording", str(files / "kept"))
    assert told.exit_code == 2
    assert told.stderr == (f"Error: recording kept has no pod for scheduler `default-scheduler`; its pods: {there}\n")


def test_a_new_policy_for_a_scheduler_that_no_pod_asks_for_is_refused(files: Path) -> None:
    CliRunner().invoke(cli, ["simulate", str(files / "day.yaml"), "--record", str(files / "kept")])
    (files / "idle.policy").write_text('policy "idle" { scheduler "idle" }', encoding="utf-8")
    (files / "both").mkdir()
    for name in ("old.policy", "idle.policy"):
        (files / "both" / name).write_text((files / name).read_text())
    told = plan(files, str(files / "both"), "idle.policy", "--recording", str(files / "kept"))
    assert told.exit_code == 2
    assert "recording kept has no pod for scheduler `idle`; its pods: 6 for `default-scheduler`" in told.stderr


def recorded(files: Path, *messages: Message) -> None:
    """A recording of a cluster with one node in which this happens, a second after each other."""
    directory, recorder = RecordingDirectory(files / "kept"), Recorder(Began("0", "run", watched_only=True))
    node = NodeObserved(make_node("a").allocatable(cpu="4", pods="10").build())
    for at, message in enumerate((node, CacheSynced(), *messages), 1):
        recorder.told(float(at), message)
    directory.write(recorder.take(), 0.0)
    directory.close()


def test_a_cluster_as_it_is_and_filled_anew(files: Path) -> None:
    page = json.loads(
        plan(
            files, "old.policy", "new.policy", "--cluster", "dump.json", "--now", "2026-01-05T11:00:00Z", "-o", "json"
        ).stdout
    )
    assert page["now"]["waiting"] == 3
    assert page["now"]["placed"] == {"old": 3, "new": 1}
    assert page["old"]["waiting"] == 0
    assert page["new"]["waiting"] == 2
    assert page["newlyWaiting"]["count"] == 2
    text = plan(files, "old.policy", "new.policy", "--cluster", "dump.json", "--now", "2026-01-05T11:00:00Z").stdout
    assert "Of 3 pods that wait 3 would be placed, 1 with the new policy" in text


def test_markdown_for_a_review(files: Path) -> None:
    text = plan(files, "new.policy", "--scenario", "day.yaml", "-o", "markdown").stdout
    assert text.startswith("### policyengine plan\n")
    assert "| waiting | 0 | 2 | worse |" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old.policy", "new.policy", "day.yaml", "--scenario", "day.yaml"], "give the NEW policy, or OLD and NEW"),
        (
            ["new.policy", "--scenario", "day.yaml", "--cluster", "dump.json"],
            "give one of --cluster, --recording and --scenario",
        ),
        (["new.policy", "--scenario", "day.yaml", "--fail-on", "waitng > 0"], "`waitng > 0`: "),
        (["new.policy", "--recording", "nothing"], "cannot read"),
        (["lib.policy", "--scenario", "day.yaml"], "lib.policy` holds no policy"),
        (["lib.policy", "new.policy", "--scenario", "day.yaml"], "lib.policy` holds no policy"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(files: Path, arguments: list[str], message: str) -> None:
    told = plan(files, *arguments)
    assert told.exit_code == 2
    assert message in told.stderr


def test_a_policy_for_another_scheduler_name_is_refused(files: Path) -> None:
    (files / "other.policy").write_text('policy "other" { scheduler "other" }')
    told = plan(files, "other.policy", "--scenario", "day.yaml")
    assert told.exit_code == 2
    assert told.stderr == (
        "Error: policy `other` serves scheduler `other`, which nobody serves today; there are default-scheduler: give "
        "OLD and NEW for the same name\n"
    )


@pytest.mark.parametrize("form", ["json", "html"])
def test_policies_played_side_by_side_give_the_same_page(
    files: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    arguments = ["old.policy", "new.policy", "--cluster", "dump.json", "--now", "2026-01-05T11:00:00Z", "-o", form]
    alone = plan(files, *arguments)
    monkeypatch.setattr("policyengine.commands.plan.MANY", 0)
    monkeypatch.setattr("policyengine.commands.beside._can_fork", lambda: True)
    beside = plan(files, *arguments)
    assert (beside.exit_code, beside.stdout) == (0, alone.stdout)
