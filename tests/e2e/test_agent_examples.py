"""The walk-throughs of the policies and of the framework: their tables and pictures are what comes of them, and their
plugin says what their policy says."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from policyengine import Simulation
from policyengine.cluster.node_objects import Node
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.commands.policies import load_profiles
from policyengine.language.parse import read_source
from policyengine.plugins.registry import IN_TREE
from policyengine.policy_compiler import compile_files
from policyengine.scheduler.messages import NodeObserved, PodObserved
from policyengine.trials.outcome import Outcome
from policyengine.trials.trial import Trial

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def module(path: Path) -> Any:
    return SimpleNamespace(**runpy.run_path(str(path)))


def played(scenario: str, **params: str) -> Outcome:
    profiles = load_profiles([ROOT / "policies" / "pigeon.policy"], params) if params else None
    return Simulation(EXAMPLES / f"{scenario}.yaml", profiles).run()


def table(example: str) -> list[list[str]]:
    """The rows of the tables on an example's page."""
    text = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\|.*\|$", text, re.MULTILINE)]


@pytest.mark.parametrize("example", ["safe", "pigeon"])
def test_the_picture_of_an_example_is_what_comes_of_it(example: str) -> None:
    drawing = module(EXAMPLES / "load_over_nodes.py")
    picture = (EXAMPLES / example / "load.svg").read_text(encoding="utf-8")
    assert drawing.svg(drawing.pictures(example)) == picture


def test_the_table_of_safe_counts_the_pods_of_its_nodes() -> None:
    told = {row[0]: row[3:] for row in table("safe") if row[0].startswith("node-")}
    for column, scenario in enumerate(("safe/overload", "safe/balance")):
        found = Counter(pod.node for pod in played(scenario).ledger.pods.values())
        assert {name: found[name] for name in told} == {
            name: int(row[column].replace("refused", "0")) for name, row in told.items()
        }


def test_the_table_of_pigeon_counts_the_large_pods() -> None:
    told = {row[0].strip("`"): row[2] for row in table("pigeon") if row[2:]}
    del told["objective"], told["---"]
    assert set(told) == {"LOAD_BALANCE", "A_BINPACK", "CONSOLIDATE"}
    for objective, text in told.items():
        pods = played("pigeon/scenario", objective=objective).ledger.pods.values()
        large = [pod for pod in pods if pod.template != "small"]
        assert text == f"{sum(pod.bound is not None for pod in large)} of {len(large)}"


def test_the_two_groups_of_the_deadlock_run_one_after_the_other() -> None:
    bound = {pod.name: pod.bound for pod in played("framework/deadlock/on").ledger.pods.values()}
    assert {bound[f"default/red-{number}"] for number in range(3)} == {2.0}
    assert {bound[f"default/blue-{number}"] for number in range(3)} == {62.0}


def lines(policy: str) -> list[tuple[str, str]]:
    """What the policy has logged of one pod, with the points."""
    entry = module(EXAMPLES / "framework/logging/package/two_lines.py").TWO_LINES
    source = read_source(EXAMPLES / "framework" / "logging" / policy)
    result = compile_files([source], None, {**IN_TREE, "TwoLines": replace(entry, in_base=False)})
    assert not result.diagnostics
    trial = Trial(result.profiles, 0.0)
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    trial.see(NodeObserved(decode(Node, {"metadata": {"name": "a"}, "status": {"allocatable": room}})))
    metadata = {"name": "p", "namespace": "default", "uid": "1"}
    spec = {"schedulerName": "logged", "containers": [{"name": "c"}]}
    trial.see(PodObserved(decode(Pod, {"metadata": metadata, "spec": spec})))
    trial.settle()
    return [(log.point, log.message) for _, log in trial.logged]


def test_the_plugin_logs_what_the_policy_logs() -> None:
    said = lines("rules.policy")
    assert said == [("preFilter", "trying default/p"), ("postBind", "default/p is on a")]
    assert lines("plugin.policy") == said
