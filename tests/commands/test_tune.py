"""`policyengine tune`: what it writes and prints, and when it refuses."""

import fcntl
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from policyengine.commands.main import cli
from policyengine.policy_compiler import compile_policy
from tests.commands.process import Ended, policyengine
from tests.tuning.played import policy, recording, scenario

pytest.importorskip("optuna", reason="Optuna is not installed")


def tune(folder: Path, *arguments: str | Path, trials: int = 8, objective: str = "p99(wait)") -> Ended:
    given = ("--objective", objective, "--trials", str(trials), "--points", "2", "--jobs", "1", "--out", folder / "out")
    return policyengine("tune", policy(folder), *given, *arguments)


def test_seeds_of_a_scenario_give_params_a_patch_a_page_and_a_study_that_goes_on(tmp_path: Path) -> None:
    given = ("--scenario", scenario(tmp_path), "--seeds", "2", "--held-out-seeds", "2")
    found = tune(tmp_path, *given)
    assert found.code == 0, found.err
    assert "8 candidates" in found.out and "Held out" in found.out and "95 %" in found.out
    assert "note: params.yaml holds no weights" in found.out
    out = tmp_path / "out"
    kept = json.loads((out / "result.json").read_text())
    params = yaml.safe_load((out / "params.yaml").read_text())
    assert params == {"most": kept["values"]["most"]}
    changed = [line[1:] for line in (out / "policy.patch").read_text().splitlines() if line.startswith("+ ")]
    assert f"  param most: int = {params['most']} range [1, 40]" in changed
    assert f'  score "full" weight {kept["values"]["weight:full"]} = ' in "\n".join(changed)
    page = (out / "index.html").read_text()
    assert page.startswith("<!doctype html>") and page.count("<svg") == 4
    assert [one["workload"] for one in kept["heldOut"]] == ["s.yaml seed 3", "s.yaml seed 4"]
    more = json.loads(tune(tmp_path, *given, "-o", "json", trials=12).out)
    assert more["candidates"][:8] == kept["candidates"]
    assert len(more["candidates"]) == 12


def test_of_recordings_the_last_third_is_held_out_unless_others_are_named(tmp_path: Path) -> None:
    days = [recording(tmp_path, seed) for seed in (1, 2, 3)]
    named = [flag for day in days for flag in ("--recording", str(day))]
    found = json.loads(tune(tmp_path, *named, "-o", "json").out)
    assert [one["workload"] for one in found["heldOut"]] == ["day-3"]
    (tmp_path / "out" / "study.log").unlink()
    found = json.loads(tune(tmp_path, *named[:2], "--held-out", days[1], "-o", "json").out)
    assert [one["workload"] for one in found["heldOut"]] == ["day-2"]
    (tmp_path / "out" / "study.log").unlink()
    found = json.loads(tune(tmp_path, *named[:2], "-o", "json").out)
    assert found["notes"][0].startswith("nothing was held out")
    (tmp_path / "out" / "study.log").unlink()
    (tmp_path / "other").mkdir()
    of_that_name = days[1].rename(tmp_path / "other" / "day-1")
    found = json.loads(tune(tmp_path, *named[:2], "--held-out", of_that_name, "-o", "json").out)
    assert [one["workload"] for one in found["heldOut"]] == ["day-1"]


def test_a_test_of_the_policy_that_fails_with_what_was_found_is_told(tmp_path: Path) -> None:
    held = """
  test "two are enough" {
    given node "n" { allocatable: {cpu: 4, memory: 8Gi, pods: 110} }
    given pod "p" { requests: {cpu: 1} }
    expect that total("p", "n") == 500
  }
}
"""
    text = policy(tmp_path).read_text()
    (tmp_path / "tested.policy").write_text(text.rstrip().removesuffix("}") + held)
    compile_policy((tmp_path / "tested.policy").read_text())
    given = ("--scenario", scenario(tmp_path), "--seeds", "2", "--held-out-seeds", "0", "--jobs", "1", "--points", "0")
    asked = ("--objective", "p99(wait)", "--trials", "8", "--out", tmp_path / "out")
    found = policyengine("tune", tmp_path / "tested.policy", *given, *asked)
    assert "note: of the changed policy: test `two are enough` of policy `p` fails" in found.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "give --recording, once or more, or --scenario"),
        (("--scenario", "s.yaml", "--recording", "x"), "give --recording, once or more, or --scenario"),
        (("--scenario", "s.yaml", "--held-out", "x"), "--held-out goes with --recording"),
        (("--scenario", "none.yaml"), "none.yaml"),
        (("--recording", "none"), "none"),
        (("--scenario", "s.yaml", "--vary", "mot"), "did you mean `most`"),
        (("--scenario", "s.yaml", "--objective", "pods"), "write `minimize pods`"),
        (("--scenario", "s.yaml", "--objective", "minimize nobody"), "nobody"),
        (("--scenario", "s.yaml", "--constraint", "waiting"), "constraint `waiting`"),
        (("--scenario", "s.yaml", "--param", "most=40"), "no pod waits"),
        (("--scenario", "other.yaml"), "policy `p` serves scheduler `s`, which nobody serves today; there are o"),
        (("--scenario", "torn.yaml", "--jobs", "2"), "torn.yaml"),
        (("--recording", "torn", "--jobs", "2"), "torn"),
        (("--recording", "day-1", "--held-out", "day-1"), "`day-1` is trained on and held out"),
        (("--recording", "day-1", "--held-out", "link"), "`link` is trained on and held out"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_message(tmp_path: Path, given: tuple[str, ...], said: str) -> None:
    (tmp_path / "other.yaml").write_text(
        scenario(tmp_path).read_text().replace('scheduler \\"s\\"', 'scheduler \\"o\\"')
    )
    (tmp_path / "torn.yaml").write_text(scenario(tmp_path).read_text()[:-20])
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "0.segment").write_bytes(b"no recording")
    if "day-1" in given:
        (tmp_path / "link").symlink_to(recording(tmp_path, 1))
    files = {path.name for path in tmp_path.iterdir()} | {"none.yaml", "none"}
    placed = [str(tmp_path / one) if one in files else one for one in given]
    found = tune(tmp_path, *placed)
    assert found.code == 2, found.out
    assert said in found.err


def test_a_study_of_another_policy_is_refused_and_kept(tmp_path: Path) -> None:
    given = ("--scenario", scenario(tmp_path), "--seeds", "1", "--held-out-seeds", "0")
    assert tune(tmp_path, *given).code == 0
    kept = (tmp_path / "out" / "study.log").read_bytes()
    found = tune(tmp_path, *given, "--param", "most=3")
    assert (found.code, "a study of another policy" in found.err) == (2, True)
    assert (tmp_path / "out" / "study.log").read_bytes().startswith(kept)


def test_a_second_search_in_the_same_folder_is_refused_while_the_first_goes_on(tmp_path: Path) -> None:
    given = ("--scenario", scenario(tmp_path), "--seeds", "1", "--held-out-seeds", "0")
    (tmp_path / "out").mkdir()
    with (tmp_path / "out" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = tune(tmp_path, *given)
    assert (found.code, "another process searches in" in found.err) == (2, True)
    assert tune(tmp_path, *given).code == 0


def test_a_policy_is_read_from_standard_input_and_a_recording_that_breaks_off_is_used_and_told(tmp_path: Path) -> None:
    days = [recording(tmp_path, seed) for seed in (1, 2)]
    with (days[0] / "000001.recording").open("ab") as file:
        file.write(b"half a frame")
    named = [flag for day in days for flag in ("--recording", str(day))]
    asked = [
        "--objective",
        "p99(wait)",
        "--trials",
        "8",
        "--points",
        "0",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    found = CliRunner().invoke(cli, ["tune", "-", *asked, *named], input=policy(tmp_path).read_text())
    assert found.exit_code in (0, 1), found.stderr
    assert "note: day-1: " in found.stdout
