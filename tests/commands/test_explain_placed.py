"""`explain` of a pod that is on a node: the table, from what a scheduler wrote down and from a cluster's objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from rich.console import Console

from policyengine.commands.explain import explain
from policyengine.commands.explaining.as_text import show_why
from policyengine.commands.explaining.live_answers import show
from policyengine.diagnosis.why_here import why_here
from policyengine.scheduler.messages import PodDeleted
from policyengine.scheduler.pod_timeline import RecentPlacements
from policyengine.server.debug import pod_timeline
from tests.builders import make_node, make_pod
from tests.scheduler.driver import Driver, node, pod
from tests.scheduler.policy_members import driven


def run(tmp_path: Path, *arguments: str) -> Result:
    taint = "\x1b[31mred"
    cluster = {
        "nodes": [
            make_node("n1").capacity(cpu="4", pods="9").json(),
            make_node("n2").capacity(cpu="8", pods="9").json(),
            make_node("n3").capacity(cpu="8", pods="9").taint("x", taint).json(),
        ],
        "pods": [
            make_pod("web").req(cpu="1").node("n1").json(),
            make_pod("theirs").scheduler("elsewhere").node("n1").json(),
            make_pod("done").node("n1").phase("Succeeded").json(),
            make_pod("waits").req(cpu="1").json(),
        ],
    }
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(cluster), encoding="utf-8")
    return CliRunner().invoke(explain, ["--cluster", str(path), *arguments])


def printed(why: Any) -> list[str]:
    console = Console(width=200, record=True, file=None, highlight=False, color_system=None)
    with console.capture() as captured:
        show_why(why, console)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_pod_of_a_file_is_worked_out_and_said_to_be(tmp_path: Path) -> None:
    told = run(tmp_path, "web")
    assert told.exit_code == 0, told.output
    lines = [line.rstrip() for line in told.stdout.splitlines()]
    assert lines[0] == "default/web  on n1"
    assert lines[1].startswith(
        "  worked out as of now, with no record of the decision (only the scheduler that took it"
    )
    assert lines[1].endswith("it would be placed on n2")
    assert lines[2].startswith("  by policy default ") and lines[2].endswith(", which serves it")
    assert lines[3] == "  2 of 3 nodes would fit; nodes refused by TaintToleration 1"
    assert lines[4].split() == ["score", "n1", "n2"]
    assert lines[5].split()[:3] == ["TaintToleration", "(weight", "3)"]
    assert lines[-1].split()[0] == "total"


def test_its_json_is_a_list_like_any_other(tmp_path: Path) -> None:
    (entry,) = json.loads(run(tmp_path, "default/web", "-o", "json").stdout)
    assert (entry["pod"], entry["outcome"], entry["node"]) == ("default/web", "placed", "n1")
    assert list(entry["why"]["total"]) == ["n1", "n2"]


def test_a_pod_of_another_scheduler_is_told_whose_it_is(tmp_path: Path) -> None:
    told = run(tmp_path, "theirs")
    assert told.exit_code == 0
    assert told.stdout.strip() == (
        "default/theirs  on n1; no policy here serves its schedulerName `elsewhere`, whose scheduler knows why"
    )


def test_who_has_finished_or_is_asked_for_alone_is_refused_in_a_sentence(tmp_path: Path) -> None:
    done, alone = run(tmp_path, "done"), run(tmp_path, "--alone", "web")
    assert (done.exit_code, alone.exit_code) == (2, 2)
    assert "it has succeeded, and has no node any more" in done.output
    assert "it is on node `n1`; without --alone `explain` says why" in alone.output


def test_a_record_is_told_before_the_pods_story() -> None:
    driver = Driver().showing(node("n1"), node("n2"), pod("low", cpu="4").node("n1"))
    driver.see(pod("mid", cpu="4").priority(5).node("n2"), pod("high", cpu="4").priority(10))
    driver.cycle()
    driver.send(PodDeleted("default", "low", "low"))
    driver.wait(20)
    driver.cycle()
    console = Console(width=200, record=True, highlight=False, color_system=None)
    with console.capture() as captured:
        show(pod_timeline(driver.state, "default", "high"), console)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    assert lines[1].startswith("  placed 1970-01-01T00:17:00.000Z by policy default ")
    assert lines[1].endswith(", 20.0 s after it was queued, at attempt 2")
    assert lines[2] == "  1 of 2 nodes fit; nodes refused by NodeResourcesFit 1"
    assert lines[3] == "  room had been made for it here: none was scored"
    assert lines[4] == (
        "  room was made for it on n1 (of 2 nodes that could be cleared 1 is left by the lowest priority of the most "
        "important victim): default/low had to go"
    )
    assert lines[5].split()[2] == "queued"


def test_tiers_come_first_in_points_and_the_total_is_what_counts_behind_them() -> None:
    rules = """base none
      score "small" weight 2 = node.name == "n2" ? 100 : 0
      score "own" tier = node.name == "n1" ? 70 : 0
      score "near" tier = 50"""
    driver = driven(rules).showing(node("n1"), node("n2"), pod("p"))
    driver.cycle()
    info = driver.state.view.pods["p"]
    for _ in ("recorded", "worked out"):
        why = why_here(driver.state, info)
        assert why is not None
        assert [line.split() for line in printed(why)[-5:]] == [
            ["score", "n1", "n2"],
            ["own", "(tier)", "70", "0"],
            ["near", "(tier)", "50", "50"],
            ["small", "(weight", "2)", "0", "200"],
            ["total", "behind", "the", "tiers", "0", "200"],
        ]
        driver.state._core.placements = RecentPlacements()
    assert why["basis"] == "now"


def test_of_equal_nodes_the_hash_is_named() -> None:
    driver = Driver().showing(*(node(name) for name in ("n1", "n2", "n3", "n4")), pod("p"))
    driver.cycle()
    why = why_here(driver.state, driver.state.view.pods["p"])
    assert why is not None
    lines = printed(why)
    taken, *others = why["total"]
    assert lines[2].split()[:4] == ["score", "(1", "more", "fit)"]
    assert lines[-1] == (
        f"  {taken} has the total of {others[0]} and {others[1]}: of equal nodes the hash of the pod's UID decides"
    )
