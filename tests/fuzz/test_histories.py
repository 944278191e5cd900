"""Generated histories under generated policies hold no decision that a naive interpreter does not understand."""

from __future__ import annotations

import pytest

from policyengine.cluster.pod_info import PodInfo
from policyengine.framework.scoring import ONLY, Choice
from policyengine.language.parse import parse_file
from policyengine.scheduler.core import Core
from policyengine.scheduler.profiles import ServedProfile
from tests.fuzz.histories import main, policy_of, tried
from tests.fuzz.test_rules import OF_HISTORIES, kinds_in


@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_every_decision_of_a_history_is_understood(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["25", str(first)]) == 0, capsys.readouterr().out


def test_a_decision_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(core: Core, served: ServedProfile, pod: PodInfo) -> Choice | None:
        nodes = core.view.nodes
        return Choice(ONLY, nodes.n, nodes.n, (), (nodes.names[0],)) if nodes.n else None

    monkeypatch.setattr("policyengine.scheduler.cycle.select_node_at_once", first)
    assert any(tried(seed)[0] for seed in range(10))


def test_every_setting_of_a_policy_is_written() -> None:
    found = [written for seed in range(40) if (written := policy_of(seed)) is not None]
    trees = [parse_file(source)[0] for one in found for source in one.sources]
    assert kinds_in(trees) >= OF_HISTORIES
