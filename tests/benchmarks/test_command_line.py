"""`python -m benchmarks` as a user meets it; no time is asserted."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import measure, ratios
from benchmarks.__main__ import bench
from policyengine.simulator.sandbox import kubeconfig
from tests.commands.process import benchmarks

SMALL = ("--nodes", "10", "--pods", "20")


def test_decisions_are_told_as_a_table() -> None:
    ended = benchmarks("decisions", "peer-mixed", *SMALL)
    assert ended.code == 0, ended.err
    assert "10 / 20 | default |    20 |" in ended.out
    assert "| peer-mixed | " in ended.out


def test_a_workload_runs_end_to_end_beside_the_client_that_decides_nothing() -> None:
    ended = benchmarks("peer-basic", *SMALL, "-o", "json")
    assert ended.code == 0, ended.err
    record = json.loads(ended.out)
    ours, *limits = record["figures"]["runs"]
    assert ours["contestant"] == "policyengine"
    names = [limit["contestant"] for limit in limits]
    assert names == ["limit, watch", "limit, watch, events"]
    assert {ours["bound"], ours["events"], *(limit["bound"] for limit in limits)} == {20}
    assert ours["checks"] > 0 and ours["cpu_seconds"] > 0 and ours["peak_mb"] > 10 and ours["last_words"] == ""
    assert ours["pods_per_node"] == limits[-1]["pods_per_node"] == [2, 2, 2.0]
    assert set(record["ratios"]) == {
        *(f"{what} / {name}" for what in ("time", "cpu") for name in names),
        "time to the last event / limit, watch, events",
    }
    assert record["command"] == "python -m benchmarks peer-basic --nodes 10 --pods 20"


def test_a_policy_of_one_s_own_decides(tmp_path: Path) -> None:
    policy = tmp_path / "own.policy"
    policy.write_text(
        'policy "own" {\n  scheduler "own"\n\n  score "fullest" weight 1 = node.podCount > 0 ? 100 : 0\n}\n'
    )
    ended = benchmarks("decisions", "peer-basic", *SMALL, "--policy", policy, "-o", "json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["figures"]["policy"] == "own"


@pytest.fixture
def full(tmp_path: Path) -> Path:
    policy = tmp_path / "full.policy"
    policy.write_text(
        'policy "full" {\n  scheduler "full"\n\n  param most: int = 0 range [0, 9]\n\n'
        '  filter "room" { require node.podCount < most else "{most} at most" }\n}\n'
    )
    return policy


def test_its_params_take_other_values(full: Path) -> None:
    asked = ("decisions", "peer-basic", *SMALL, "--policy", full, "-o", "json")
    assert json.loads(benchmarks(*asked).out)["figures"]["bound"] == 0
    record = json.loads(benchmarks(*asked, "--param", "most=1").out)
    assert record["figures"]["bound"] == 10
    assert record["command"].endswith("--param most=1")
    assert record["key"] == "decisions peer-basic 10/20 full(most=1)"


def test_so_they_do_in_the_scheduler_s_own_process_where_pods_may_come_while_it_runs(full: Path) -> None:
    given = ("--policy", full, "--param", "most=2", "--create", "during", "--no-limit", "-o", "json")
    ended = benchmarks("peer-basic", *SMALL, *given)
    assert ended.code == 0, ended.err
    assert "20 of 20 bound" in ended.err
    record = json.loads(ended.out)
    (run,) = record["figures"]["runs"]
    assert (run["bound"], run["created"]) == (20, "during")
    assert record["command"].endswith("--create during --no-limit")
    assert record["key"].endswith(" during")


@pytest.mark.parametrize(
    ("param", "told"),
    [
        ("most=10", "`10` is outside the range [0, 9] of `most`"),
        ("least=1", "`least` is no parameter of the policy; it has `most`"),
        ("most", "`most` is not of the form NAME=VALUE"),
    ],
)
def test_a_value_that_a_param_cannot_have_is_told(full: Path, param: str, told: str) -> None:
    ended = benchmarks("decisions", *SMALL, "--policy", full, "--param", param)
    assert ended.code == 2
    assert told in ended.err


def test_what_is_saved_can_be_compared_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratios, "ROUNDS", 1)
    monkeypatch.setattr(ratios, "KINDS", ("basic",))
    results = tmp_path / "results.json"
    asked = ("ratios", "--nodes", "20", "--pods", "5")
    assert benchmarks(*asked, "--save", results).code == 0
    content = json.loads(results.read_text())
    for saved, code in ((1e9, 0), (1e-9, 1)):
        content["records"][0]["ratios"] = {"peer-basic: decision": saved}
        results.write_text(json.dumps(content))
        ended = benchmarks(*asked, "--compare", results)
        assert ended.code == code, ended.err
        assert "| peer-basic: decision |" in ended.out
    ended = benchmarks("memory", *SMALL, "--compare", results)
    assert (ended.code, "has no ratios of `memory peer-basic 10/20 default`" in ended.err) == (2, True)
    shown = benchmarks("page", "--from", results)
    assert shown.code == 0 and shown.out.startswith("# What it costs")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nonsense",), "there is no workload `nonsense`; choose one of decisions, memory,"),
        (("decisions", "nonsense"), "there is no workload `nonsense`; choose one of peer-basic,"),
        (("peer-basic", "peer-mixed"), "`peer-basic` takes no second workload"),
        (("page",), "`page` needs --from FILE"),
        (("page", "--from", "/nowhere/results.json"), "cannot read `/nowhere/results.json`: no such file"),
        (("peer-basic", "--kubeconfig", "/nowhere/config"), "kubeconfig `/nowhere/config` does not exist"),
        (("memory", *SMALL, "--compare", "/nowhere/r.json"), "cannot read `/nowhere/r.json`"),
        (("memory", *SMALL, "--save", "/nowhere/r.json"), "cannot write `/nowhere/r.json`"),
        (("decisions", *SMALL, "--param", "a=1"), "--param is for a policy: give its file with --policy"),
        (("decisions", *SMALL, "--policy", "/"), "`/` is a folder; a benchmark is of one file"),
        (("decisions", "Gang", *SMALL, "--param", "a=1"), "`a` is no parameter of the policy"),
    ],
)
def test_what_cannot_be_measured_is_told_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    ended = benchmarks(*arguments)
    assert ended.code == 2
    assert told in ended.err


def test_a_server_that_is_not_there_has_its_own_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig("http://127.0.0.1:9")))
    ended = benchmarks("peer-basic", "--kubeconfig", path)
    assert ended.code == 3, ended.err
    assert "cannot reach the API server" in ended.err


def test_a_client_that_decides_nothing_is_measured_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra `benchmarks`, is not installed")
    monkeypatch.setattr(measure, "LIMITS", measure.LIMITS[-1:])
    picture = tmp_path / "run.svg"
    ended = benchmarks("limit", "peer-spread", *SMALL, "--plot", picture)
    assert ended.code == 0, ended.err
    assert "peer-spread: 10 nodes, 20 pods." in ended.out and "| limit, watch, events |" in ended.out
    assert "<svg" in picture.read_text() and "limit, watch, events" in picture.read_text()


def test_several_schedulers_share_a_workload() -> None:
    ended = benchmarks("peer-basic", *SMALL, "--schedulers", "2", "--no-limit", "-o", "json")
    assert ended.code == 0, ended.err
    _, run = json.loads(ended.out)["figures"]["runs"]
    assert (run["contestant"], run["bound"], run["events"]) == ("2 schedulers", 20, 20)
    assert (run["moved"], run["overcommitted"]) == (0, []) and run["checks"] > 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("peer-basic", "--apiserver", "envtest"), "--apiserver envtest needs $KUBEBUILDER_ASSETS"),
        (("peer-basic", "--beside", "kube-scheduler"), "is not there or cannot be run; $KUBEBUILDER_ASSETS names its"),
        (("peer-basic", "--apiserver", "envtest", "--kubeconfig", "x"), "--kubeconfig names a server that runs"),
        (("decisions", "--schedulers", "2"), "--schedulers is for a workload"),
        (("Gang", "--schedulers", "2"), "`Gang` has a policy of its own"),
        (("memory", *SMALL, "--plot", "x.svg"), "there is no picture of `memory`"),
        (("scale", "--nodes", "10"), "the least points are of 1,000 nodes and 10,000 pods"),
        (("scale", "peer-basic"), "`scale` takes no second workload"),
    ],
)
def test_what_does_not_go_together_is_told_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    ended = CliRunner().invoke(bench, arguments, env={"KUBEBUILDER_ASSETS": ""})
    assert ended.exit_code == 2, ended.output
    assert told in " ".join(ended.output.split())
