"""`policyengine replay` and `--record`: what they print and when they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.main import cli
from policyengine.recording.directory import RecordingDirectory, files
from policyengine.recording.segment import MAGIC
from tests.commands.process import policyengine
from tests.recording.test_replay import with_another_policy

SCENARIO = """
policies: [{text: 'policy "p" { base filters filter "few" { require node.podCount < 9 else "enough" } }'}]
nodes: [{name: n, count: 2, allocatable: {cpu: 4}}]
pods:
  - {name: web, count: 9, every: 30s, requests: {cpu: 1}, runs: 5min}
  - {name: wide, at: 1min, requests: {cpu: 9}}
"""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    scenario = tmp_path / "day.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    done = CliRunner().invoke(cli, ["simulate", str(scenario), "--record", str(tmp_path / "kept")])
    assert done.exit_code == 0, done.output
    return tmp_path / "kept"


def replay(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["replay", *map(str, arguments)])


def test_a_simulation_is_played_again_in_another_process_to_the_same_digest(recording: Path) -> None:
    told = [policyengine("replay", str(recording), "-o", "json") for _ in range(2)]
    first, second = (json.loads(one.out) for one in told)
    assert first == second
    assert first["exact"] is True
    assert first["difference"] is None
    assert first["messages"] > 30
    text = replay(recording)
    assert text.exit_code == 0
    assert f"played again, every action the same; digest {first['digest']}" in text.stdout


def test_a_simulation_with_hidden_names_decides_the_same_under_its_key(tmp_path: Path) -> None:
    scenario, key = tmp_path / "day.yaml", tmp_path / "key"
    scenario.write_text(SCENARIO, encoding="utf-8")
    key.write_bytes(b"k" * 32)
    told = []
    for name in ("one", "other"):
        flags = ["--record", str(tmp_path / name), "--redact-key", str(key)]
        assert CliRunner().invoke(cli, ["simulate", str(scenario), *flags]).exit_code == 0
        told.append(replay(tmp_path / name))
    assert told[0].exit_code == 0 and "every action the same" in told[0].stdout
    assert told[0].stdout == told[1].stdout
    assert "default/wide " not in replay(tmp_path / "one", "queue").stdout
    key.write_bytes(b"short")
    refused = CliRunner().invoke(cli, ["simulate", str(scenario), "--record", "r", "--redact-key", str(key)])
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "16 at least" in refused.stderr


@pytest.mark.parametrize("flags", [["--redact"], ["--redact-key", "key"]])
@pytest.mark.parametrize("command", [["simulate", "day.yaml"], ["sandbox"]])
def test_nothing_is_hidden_where_nothing_is_recorded(command: list[str], flags: list[str]) -> None:
    refused = CliRunner().invoke(cli, [*command, *flags])
    assert refused.exit_code == 2
    assert "--redact and --redact-key are for --record" in refused.stderr


def test_a_recording_is_cut_down_to_what_shows_a_condition(recording: Path, tmp_path: Path) -> None:
    small, condition = tmp_path / "small", 'pods["default/wide"].message.contains("Insufficient cpu")'
    told = replay(recording, "--shrink", small, "--condition", condition)
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.startswith("4 of ") or told.stdout.startswith("5 of "), told.stdout
    assert "default/wide " in replay(small, "queue").stdout
    assert replay(small).exit_code == 0


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--shrink", "small"], "nothing differs in it: give a --condition"),
        (["--shrink", "small", "--condition", "nodes > 9"], "`nodes > 9` is False at its end, and not true"),
        (["--condition", "nodes > 9"], "--condition is for --shrink"),
        (["queue", "--shrink", "small"], "--shrink writes a recording, and takes no question"),
    ],
)
def test_what_cannot_be_cut_down_is_one_sentence(recording: Path, flags: list[str], why: str) -> None:
    told = replay(recording, *flags)
    assert told.exit_code == 2
    assert told.stderr.splitlines()[-1] == f"Error: {why}"


def test_the_queue_and_a_pod_at_a_moment(recording: Path) -> None:
    at = "2026-01-05T00:02:10Z"
    queue = replay(recording, "queue", "--at", at)
    assert queue.exit_code == 0
    assert "default/wide " in queue.stdout
    pod = replay(recording, "explain", "wide", "--at", at, "-o", "json")
    page = json.loads(pod.stdout)
    assert page["place"] == "unschedulable"
    assert page["message"].startswith("0/2 nodes are available: 2 Insufficient cpu")
    bound = json.loads(replay(recording, "explain", "web-0", "--at", at, "-o", "json").stdout)
    assert bound["place"] == "bound"
    assert json.loads(replay(recording, "quota", "-o", "json").stdout) is not None


def test_a_pod_that_was_not_there_yet_is_told(recording: Path) -> None:
    told = replay(recording, "explain", "web-8", "--at", "2026-01-05T00:00:10Z")
    assert (told.exit_code, told.stderr) == (2, "Error: there was no pod default/web-8 at that moment\n")


@pytest.mark.parametrize("question", [["why"], ["explain"], ["queue", "x"]])
def test_other_questions_are_refused(recording: Path, question: list[str]) -> None:
    told = replay(recording, *question)
    assert told.exit_code == 2
    assert "ask `queue`, `quota`, `rollout` or `explain POD`" in told.stderr


def test_a_cut_recording_is_played_as_far_as_it_goes_and_a_damaged_one_is_told(recording: Path, tmp_path: Path) -> None:
    again = CliRunner().invoke(cli, ["simulate", str(tmp_path / "day.yaml"), "--record", str(recording)])
    assert again.exit_code == 0
    _, file = files(recording)
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    cut = replay(recording)
    assert cut.exit_code == 0
    assert "note: 000002.recording: the last frame was not written whole, and is left out" in cut.stderr
    file.write_bytes(whole[:-3] + b"xyz")
    damaged = replay(recording)
    assert damaged.exit_code == 2
    assert "note: 000002.recording: frame 1 is damaged: its checksum does not match" in damaged.stderr
    assert replay(recording, "queue").exit_code == 2
    assert replay(files(recording)[0], "queue").exit_code == 0


def test_a_question_about_what_came_after_the_first_difference_is_not_answered_as_if_it_were(recording: Path) -> None:
    with_another_policy(recording, "enough", "others wait")
    told = replay(recording, "queue", "--at", "2026-01-05T00:09:00Z")
    assert told.exit_code == 1
    assert told.stderr.startswith("note: this version decides otherwise, and stops there: differs at message ")


def test_what_is_no_recording_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "pods.json").write_text("{}")
    (tmp_path / "begun").write_bytes(MAGIC)
    for path, message in (
        (tmp_path / "empty", "the directory holds no recording"),
        (tmp_path / "pods.json", "pods.json: no recording of policyengine"),
        (tmp_path / "begun", "begun: nothing in it was written whole"),
        (tmp_path / "nothing", "no such file or directory"),
    ):
        told = policyengine("replay", path)
        assert told.code == 2
        assert message in told.err
        assert len(told.err.splitlines()) == 1


def test_a_directory_that_another_process_writes_is_refused(tmp_path: Path) -> None:
    scenario = tmp_path / "day.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    kept = RecordingDirectory(tmp_path / "kept")
    told = CliRunner().invoke(cli, ["simulate", str(scenario), "--record", str(tmp_path / "kept")])
    kept.close()
    assert told.exit_code == 2
    assert "is being written by another process" in told.stderr
