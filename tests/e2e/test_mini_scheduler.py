"""The seven steps of the mini-scheduler do what their pages say: on virtual time, and over HTTP with the ordinary
Kubernetes client."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from policyengine import Simulation
from policyengine.commands.policies import load_profiles
from policyengine.simulator.sandbox import sandbox, world

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mini-scheduler"
STEPS = sorted(path.parent for path in EXAMPLE.glob("*/scheduler.policy"))


def loaded_tour() -> Any:
    spec = importlib.util.spec_from_file_location("tour", EXAMPLE / "tour.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def step_name(step: Path) -> str:
    return step.name


def test_there_are_seven_steps_with_a_page_in_two_languages() -> None:
    assert [step.name[:2] for step in STEPS] == [f"{number}-" for number in range(1, 8)]
    for page in ("README.md", "README.ja.md"):
        linked = re.findall(r"\]\(([^)]+/README[^)]*)\)", (EXAMPLE / page).read_text(encoding="utf-8"))
        assert [(EXAMPLE / link).parent for link in linked] == STEPS
        assert all((EXAMPLE / link).exists() for link in linked)


@pytest.mark.parametrize("step", STEPS, ids=step_name)
def test_what_the_scenario_expects_comes_true(step: Path) -> None:
    outcome = Simulation(step / "scenario.yaml").run()
    assert outcome.verdicts
    assert [verdict for verdict in outcome.verdicts if not verdict.passed] == []


@pytest.mark.parametrize("step", STEPS, ids=step_name)
async def test_the_tour_sees_the_same_in_a_sandbox(
    step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tour = loaded_tour()
    profiles = load_profiles([step / "scheduler.policy"], run_tests=True)
    kubeconfig = tmp_path / "kubeconfig"
    async with world("embedded") as running, sandbox(running, 0, profiles):
        kubeconfig.write_text(yaml.safe_dump(running.kubeconfig), encoding="utf-8")

        def walk() -> None:
            cluster = tour.Cluster(str(kubeconfig))
            tour.STEPS[int(step.name[0]) - 1](cluster)
            cluster.table()

        await asyncio.to_thread(walk)
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["pod", "node", "why", "it", "waits"]
    assert rows
