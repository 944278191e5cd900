"""The seven steps of the mini-scheduler do on virtual time what their pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from policyengine import Simulation

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mini-scheduler"
STEPS = sorted(path.parent for path in EXAMPLE.glob("*/scheduler.policy"))


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
