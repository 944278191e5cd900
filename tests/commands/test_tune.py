"""`policyengine tune`: what it writes and prints, and when it refuses."""

import json
from pathlib import Path

import pytest
import yaml

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
    ],
)
def test_what_cannot_be_used_is_told_in_one_message(tmp_path: Path, given: tuple[str, ...], said: str) -> None:
    scenario(tmp_path)
    placed = [str(tmp_path / one) if one in ("s.yaml", "none.yaml", "none") else one for one in given]
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
