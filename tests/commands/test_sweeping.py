"""`simulate --seeds` and `plan` of several recordings, as one reads them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.main import cli
from policyengine.tuning.sweep import Seeds
from policyengine.tuning.tuned_policy import in_tree
from tests.tuning.played import TEXT, policy, recording, scenario


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments), "--jobs", "1"])


@pytest.fixture
def expecting(tmp_path: Path) -> Path:
    """A scenario that expects what comes true with some seeds."""
    path = scenario(tmp_path)
    middle = sorted(Seeds(str(path), None, in_tree)(seed)[0]["wait"]["p50"] for seed in range(5, 11))[2]
    limit = f"{int(middle * 1000) + 1}ms"
    said = json.loads(path.read_text()) | {"seed": 5, "expect": [{"pods": "t-*", "waited": {"p50": limit}}]}
    path.write_text(json.dumps(said))
    return path


def test_seeds_are_counted_on_from_the_scenarios_own_and_a_failed_one_is_named(expecting: Path) -> None:
    result = command("simulate", expecting, "--seeds", "6", "-o", "json")
    found = json.loads(result.stdout)
    assert [one["seed"] for one in found["runs"]] == [5, 6, 7, 8, 9, 10]
    passed = [all(each["passed"] for each in one["expectations"]) for one in found["runs"]]
    assert set(passed) == {True, False} and result.exit_code == 1
    waits = sorted(one["figures"]["wait"]["p99"] for one in found["runs"])
    told = found["figures"]["wait.p99"]
    assert (told["least"], told["median"], told["most"]) == (waits[0], (waits[2] + waits[3]) / 2, waits[-1])
    shown = command("simulate", expecting, "--seeds", "6")
    assert shown.exit_code == 1
    assert f"6 seeds, 5 to 10: what is expected came true with {sum(passed)} of them" in shown.stdout
    assert "Did not come true" in shown.stdout
    assert next(line.split()[:3] for line in shown.stdout.splitlines() if line.startswith("pods ")) == [
        "pods",
        "30",
        "always",
    ]


def test_where_nothing_fails_the_exit_code_is_0(tmp_path: Path) -> None:
    result = command("simulate", scenario(tmp_path), "--seeds", "2", "--seed", "7")
    assert (result.exit_code, "2 seeds, 7 to 8: nothing is expected" in result.stdout) == (0, True)


@pytest.mark.parametrize("more", [["--svg", "x.svg"], ["--record", "x"], ["--recording", "x"]])
def test_what_is_of_one_run_is_refused_beside_seeds(tmp_path: Path, more: list[str]) -> None:
    result = command("simulate", scenario(tmp_path), "--seeds", "2", *more)
    assert (result.exit_code, "--seeds goes with a SCENARIO alone" in result.stderr) == (2, True)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("days")
    return [word for seed in (1, 2, 3) for word in ("--recording", str(recording(folder, seed)))]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    path = tmp_path / "wide.policy"
    path.write_text(TEXT.replace("int = 2", "int = 40"))
    return path


def test_a_plan_of_days_tells_the_change_and_how_sure_it_is(days: list[str], wide: Path) -> None:
    found = json.loads(command("plan", wide, *days, "-o", "json").stdout)
    assert [Path(one["recording"]).name for one in found["runs"]] == ["day-1", "day-2", "day-3"]
    p99 = found["figures"]["wait.p99"]
    assert p99["new"]["median"] < p99["old"]["median"]
    assert p99["change"]["mean"] == pytest.approx(p99["new"]["mean"] - p99["old"]["mean"])
    low, high = p99["change"]["interval"]
    assert low < p99["change"]["mean"] < high
    shown = command("plan", wide, *days).stdout
    assert "3 recordings, each under both policies" in shown
    assert any(line.startswith("wait.p99") and " to " in line for line in shown.splitlines())


def test_fail_on_is_true_where_it_is_true_of_one_day(days: list[str], wide: Path, tmp_path: Path) -> None:
    played = ["plan", wide, policy(tmp_path), *days]
    each = [one["new"]["wait"]["p99"] for one in json.loads(command(*played, "-o", "json").stdout)["runs"]]
    assert command(*played, "--fail-on", f"p99(wait) > {max(each)}").exit_code == 0
    result = command(*played, "--fail-on", f"p99(wait) >= {max(each)}")
    assert result.exit_code == 1
    worst = {f"note: --fail-on is true of {days[2 * at + 1]}" for at in range(3) if each[at] == max(each)}
    assert worst == {line for line in result.stdout.splitlines() if line.startswith("note: --fail-on")}
    assert 0 < len(worst) < 3


def test_a_damaged_day_is_played_as_far_as_it_goes_and_the_exit_code_says_so(days: list[str], wide: Path) -> None:
    (file,) = Path(days[1]).glob("*.recording")
    file.write_bytes(file.read_bytes() + b"\xff" * 40)
    result = command("plan", wide, *days)
    assert result.exit_code == 2
    assert "note: day-1: 000001.recording: frame " in result.stdout
    assert command("plan", wide, *days, "--fail-on", "pods > 0").exit_code == 1


def test_bad_input_is_told_in_one_sentence(days: list[str], wide: Path, tmp_path: Path) -> None:
    strange = tmp_path / "strange.policy"
    strange.write_text('policy "q" { scheduler "nobody" }')
    unasked = tmp_path / "unasked.policy"
    unasked.write_text('policy "q" { scheduler "default-scheduler" }')
    for arguments, told in (
        ([wide, *days, "--by-rule"], "are of one recording"),
        ([wide, *days, "-o", "html"], "are of one recording"),
        ([strange, *days], "give OLD and NEW for the same name"),
        ([policy(tmp_path), *days, "--recording", tmp_path / "missing"], "missing"),
    ):
        result = command("plan", *arguments)
        assert (result.exit_code, told in result.output) == (2, True), result.output
    refused = command("plan", unasked, *days).exception
    assert "day-1 has no pod for scheduler `default-scheduler`; its pods: " in str(refused)
