"""`policyengine explain --alone`: what it prints; and what `explain` says to input it cannot use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from policyengine.commands.explain import explain
from tests.builders import make_node, make_pod
from tests.commands.process import ROOT

POLICY = """
policy "roomy" {
  filter "headroom" {
    require node.free.memory - pod.requests.memory >= 1Gi else "too little memory left"
  }
}
"""


def cluster() -> dict[str, Any]:
    big = make_node("big").allocatable(cpu="4", memory="8Gi", pods=110)
    small = make_node("small").allocatable(cpu="1", memory="1Gi", pods=110)
    spoiled = make_node("spoiled").allocatable(cpu="4", memory="8Gi", pods=110).taint("gpu")
    return {
        "nodes": [one.json() for one in (big, small, spoiled)],
        "pods": [make_pod("runs").req(cpu="1").node("big").json()],
        "pending": [
            make_pod("fits").req(cpu="500m", memory="512Mi").json(),
            make_pod("huge").req(cpu="64").json(),
            make_pod("gone", "team-a").pvc("absent").json(),
        ],
    }


def run(tmp_path: Path, *arguments: str, dump: Any = None) -> Result:
    """Each pod by itself."""
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(cluster() if dump is None else dump), encoding="utf-8")
    return CliRunner().invoke(explain, ["--alone", "--cluster", str(path), *arguments])


def entries(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert isinstance(answer, list)
    return answer


def test_the_json_of_a_policy_with_tiers_names_them_and_that_of_others_does_not(tmp_path: Path) -> None:
    path = tmp_path / "tiers.policy"
    path.write_text('policy "t" { base none score "last" tier = 9 score "s" weight 3 = 1 }', encoding="utf-8")
    fits, *_ = entries(run(tmp_path, "--policy", str(path), "-o", "json"))
    assert (fits["tiers"], fits["weights"]) == (["last"], {"last": 301, "s": 3})
    assert fits["scores"]["big"] == {"last": 9 * 301, "s": 3}
    fits, *_ = entries(run(tmp_path, "-o", "json"))
    assert not fits.keys() & {"tiers", "weights"}


def test_json_has_verdicts_scores_totals_and_the_choice(tmp_path: Path) -> None:
    fits, huge, gone = entries(run(tmp_path, "-o", "json"))
    assert fits["pod"] == "default/fits"
    assert fits["chosen"] == "big"
    assert fits["rejected"]["spoiled"] == {
        "plugin": "TaintToleration",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["node(s) had untolerated taint(s)"],
    }
    assert fits["total"] == {name: sum(shares.values()) for name, shares in fits["scores"].items()}
    assert huge["chosen"] is None
    assert huge["total"] == {}
    assert huge["rejected"]["small"]["reasons"] == ["Insufficient cpu"]
    assert gone["preFilter"]["plugin"] == "VolumeRestrictions"
    assert gone["rejected"] == {}


def test_a_kubectl_list_is_read_too(tmp_path: Path) -> None:
    plain = cluster()
    items = [*plain["nodes"], *plain["pods"], *plain["pending"]]
    items.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "passed-over"}})
    listed = {"kind": "List", "apiVersion": "v1", "items": items}
    assert entries(run(tmp_path, "-o", "json", dump=listed)) == entries(run(tmp_path, "-o", "json"))


def test_the_table_shows_choice_shares_and_reasons_without_colour(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert "default/fits  → big  2 of 3 nodes fit" in result.output
    assert "NodeResourcesFit" in result.output
    assert "default/huge  fits nowhere: all 3 nodes refuse it" in result.output
    assert 'refused as a whole by VolumeRestrictions: persistentvolumeclaim "absent" not found' in result.output


def test_what_would_help_is_shown_and_fits_80_columns(tmp_path: Path) -> None:
    result = run(tmp_path, "--pod", "default/huge")
    assert "it would fit, if you" in result.stdout
    assert "request 3 cpu instead of 64  big" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    (huge,) = entries(run(tmp_path, "-o", "json", "--pod", "default/huge"))
    assert huge["suggestions"][0]["changes"] == [{"kind": "request", "resource": "cpu", "from": "64", "to": "3"}]


def test_the_example_that_the_readme_shows_works() -> None:
    arguments = ["--cluster", "examples/first-steps/cluster.json", "--policy", "policies/riya.policy"]
    result = CliRunner().invoke(explain, [str(ROOT / one) if "/" in one else one for one in arguments])
    assert result.exit_code == 0
    shown = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    for line in result.output.splitlines():
        assert line.rstrip() in shown


def test_a_policy_judges_in_place_of_the_defaults(tmp_path: Path) -> None:
    policy = tmp_path / "roomy.policy"
    policy.write_text(POLICY, encoding="utf-8")
    fits, *_ = entries(run(tmp_path, "-o", "json", "--policy", str(policy), "--pod", "default/fits"))
    assert fits["rejected"]["small"]["plugin"] == "headroom"
    assert fits["chosen"] == "big"


def test_a_cluster_in_which_nothing_waits_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, dump={"nodes": [], "pods": []})
    assert (result.exit_code, result.stdout) == (0, "no pod waits\n")


def test_a_cluster_without_nodes_has_no_choice(tmp_path: Path) -> None:
    (only,) = entries(run(tmp_path, "-o", "json", dump={"pending": [make_pod("p").json()]}))
    preemption = {"eligible": True, "candidates": {}, "chosen": None}
    assert only == {
        "pod": "default/p",
        "rejected": {},
        "scores": {},
        "total": {},
        "chosen": None,
        "preemption": preemption,
    }


def test_a_malformed_quantity_refuses_its_pod_alone(tmp_path: Path) -> None:
    pods = [make_pod("bad").req(cpu="1x").json(), make_pod("good").req(cpu="1").json()]
    bad, good = entries(run(tmp_path, "-o", "json", dump={"nodes": cluster()["nodes"], "pending": pods}))
    assert "`1x`" in bad["preFilter"]["reasons"][0]
    assert good["chosen"] == "big"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is cut off, in line 1, column 2: print it again"),
        (b'{"nodes": [{"metadata": {"na', "is cut off, in line 1"),
        (b'{"nodes": [],}', "is not JSON: line 1, column 14"),
        (b'{"nodes": "\xff"}', "is not UTF-8: byte 11 is `0xff`"),
        (b"[1]", "a cluster is a JSON object"),
        (b'{"vertices": []}', "none of `nodes`, `pods`, `pending` is there"),
        (b'{"nodes": {}}', "`nodes` is not a list"),
        (b'{"items": [7]}', "`items` holds something that is not an object"),
        (b'{"items": [{}]}', "an item of the list has no `kind`"),
        (b'{"nodes": [{"metadata": {"name": 3}}]}', "name"),
        (b"[" * 100_000, "nested too deeply"),
        (b"", "is empty"),
        (b"\n---\n", "holds nothing"),
        (b"a: &x 1\nb: *x", "uses a YAML alias or anchor on line 1"),
        (b"- 1", "a cluster is a JSON object"),
        (
            b'{"kind": "List", "items": [{"kind": "Secret"}]}',
            "has neither nodes nor pods, only Secret; print them with",
        ),
    ],
)
def test_input_that_cannot_be_used_exits_2_with_one_message(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(content)
    result = CliRunner().invoke(explain, ["--cluster", str(path)])
    assert result.exit_code == 2
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_an_unknown_pod_exits_2(tmp_path: Path) -> None:
    result = run(tmp_path, "--pod", "default/runs")
    assert result.exit_code == 2
    assert "no pod `default/runs` waits in" in result.output


def test_a_broken_policy_exits_2_and_shows_the_line(tmp_path: Path) -> None:
    policy = tmp_path / "broken.policy"
    policy.write_text('policy "p" { filter "f" { require node.fre.memory > 0 } }', encoding="utf-8")
    result = run(tmp_path, "--policy", str(policy))
    assert result.exit_code == 2
    assert "node.fre" in result.output


NIGHT_SHIFT = """
policy "night" {
  filter "at-night" { require now.getHours("Europe/Berlin") >= 20 else "it is {now}" }
}
"""


def at_night(tmp_path: Path, *arguments: str) -> Result:
    policy = tmp_path / "night.policy"
    policy.write_text(NIGHT_SHIFT, encoding="utf-8")
    return run(tmp_path, "-o", "json", "--policy", str(policy), "--pod", "default/fits", *arguments)


def test_a_policy_is_asked_about_the_moment_that_is_given(tmp_path: Path) -> None:
    (evening,) = entries(at_night(tmp_path, "--now", "2026-01-05T20:30:00+01:00"))
    (noon,) = entries(at_night(tmp_path, "--now", "2026-01-05T11:00:00Z"))
    assert evening["chosen"] == "big"
    assert noon["preFilter"]["reasons"] == ["it is 2026-01-05T11:00:00Z"]


def test_without_a_moment_a_policy_is_asked_about_today(tmp_path: Path) -> None:
    policy = tmp_path / "old.policy"
    policy.write_text('policy "old" { filter "old" { require now.getFullYear() < 2024 else "no" } }', encoding="utf-8")
    (one,) = entries(run(tmp_path, "-o", "json", "--policy", str(policy), "--pod", "default/fits"))
    assert one["preFilter"]["reasons"] == ["no"]


def test_a_moment_that_is_none_exits_2(tmp_path: Path) -> None:
    result = at_night(tmp_path, "--now", "tonight")
    assert result.exit_code == 2
    assert "`tonight` is not a time; write it as `2026-01-05T18:30:00+01:00`" in result.output


@pytest.mark.parametrize("option", ["--address", "--tls-server-name"])
def test_what_is_for_live_alone_is_refused_without_it(option: str) -> None:
    result = CliRunner().invoke(explain, [option, "http://127.0.0.1:1"])
    assert result.exit_code == 2 and "go with --live" in result.stderr


def test_a_pod_that_has_ended_is_on_no_node_with_alone_either(tmp_path: Path) -> None:
    ended = {"metadata": {"name": "p"}, "spec": {"containers": []}, "status": {"phase": "Failed"}}
    (tmp_path / "c.json").write_text(json.dumps({"nodes": [], "pods": [ended]}))
    result = CliRunner().invoke(explain, ["--cluster", str(tmp_path / "c.json"), "--alone", "p"])
    assert "it has failed, and has no node any more" in result.stderr
