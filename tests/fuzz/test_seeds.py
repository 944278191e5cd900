"""Some trials of each kind, of which `make fuzz` tries many: all is right; what is broken on purpose is found out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from policyengine.cluster.pod_info import PodInfo
from policyengine.compiler.rules import score
from policyengine.diagnosis import suggest
from policyengine.diagnosis.forecast import Fate
from policyengine.framework.scoring import ONLY, Choice
from policyengine.language import ir, parse
from policyengine.language.bounds import Bounds
from policyengine.language.functions.answer_bounds import Interval
from policyengine.language.lint import linter
from policyengine.scheduler.core import Core
from policyengine.scheduler.profiles import ServedProfile
from tests.fuzz import explained, fixes, histories, lint_proofs, planned, remedies, rules
from tests.fuzz.seeds import main

TRIED = {
    "rules say what the naive interpreter says": ("rules", 500, 0),
    "every decision of a history is understood": ("histories", 50, 0),
    "a fixed text decides the same and has its comments": ("fixes", 30, 0),
    "the scheduler does what was told": ("explained", 4, 12),
    "a plan says what the cluster then does": ("planned", 4, 8),
    "every remedy has its pod placed": ("remedies", 10, 0),
}
"""What is proven -> a kind of trial, how many, from which seed."""


@pytest.mark.parametrize(("what", "count", "first"), TRIED.values(), ids=TRIED)
def test_trials_find_nothing_wrong(what: str, count: int, first: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([what, f"{count}", f"{first}"]) == 0, capsys.readouterr().out


# --- what is tried is worth it -----------------------------------------------------------------------------


def counts_of(found: Sequence[tuple[list[str], Mapping[str, int]]]) -> Counter[str]:
    """What there was in trials with nothing wrong."""
    assert [line for lines, _ in found for line in lines] == []
    return sum((Counter(counts) for _, counts in found), Counter[str]())


def test_forecasts_tell_of_every_fate_and_of_victims() -> None:
    told = counts_of([explained.tried(seed) for seed in range(12)])
    fates = (Fate.BOUND, Fate.HELD, Fate.GATED, Fate.UNSCHEDULABLE, Fate.UNSERVED)
    assert {*told} >= {*(fate.value for fate in fates), "victims"}


def test_most_of_a_day_is_compared_with_its_plan() -> None:
    found = [planned.tried(seed) for seed in range(8)]
    assert counts_of(found)["pods compared"] > 30
    assert any(not counts["days in part"] for _, counts in found)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_finding_about_a_generated_policy_is_false(first: int) -> None:
    assert counts_of([lint_proofs.tried(seed) for seed in range(first, first + 20)])["findings"] > 40


# --- what is wrong is found out ----------------------------------------------------------------------------


def first_wrong(tried: Callable[[int], tuple[list[str], Mapping[str, int]]], seeds: int) -> str:
    """What is told of the first of so many trials in which something is wrong; '' where nothing is."""
    return next((lines[0] for seed in range(seeds) if (lines := tried(seed)[0])), "")


def test_a_rule_that_says_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "MAX_NODE_SCORE", 99)
    assert first_wrong(rules.tried, 30)


def test_a_decision_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(core: Core, served: ServedProfile, pod: PodInfo) -> Choice | None:
        nodes = core.view.nodes
        return Choice(ONLY, nodes.n, nodes.n, (), (nodes.names[0],)) if nodes.n else None

    monkeypatch.setattr("policyengine.scheduler.cycle.select_node_at_once", first)
    assert first_wrong(histories.tried, 10)


def test_edits_that_lose_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (parse, linter):
        monkeypatch.setattr(module, "keeping_comments", lambda source, fix: fix)
    assert "lost // c" in first_wrong(fixes.tried, 6)


def test_a_remedy_that_does_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggest, "_is_prepared", lambda state, uid: True)
    monkeypatch.setattr(suggest._Plays, "start", _start_whatever(suggest._Plays.start))
    assert any("it waits still" in line for seed in range(10) for line in remedies.tried(seed)[0])


def _start_whatever(start: object) -> object:
    """Begin although every pod counts as placed."""

    def begin(plays: suggest._Plays) -> object:
        prepared, suggest._is_prepared = suggest._is_prepared, lambda state, uid: False
        try:
            return start(plays)  # type: ignore[operator]
        finally:
            suggest._is_prepared = prepared

    return begin


def of_without_nan(of: Callable[[Bounds, ir.Expr], Interval]) -> Callable[[Bounds, ir.Expr], Interval]:
    return lambda bounds, expr: of(bounds, expr)._replace(nan=False)


def test_bounds_without_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bounds, "of", of_without_nan(Bounds.of))
    assert any("PE3" in line for seed in range(60) for line in lint_proofs.tried(seed)[0])


def test_expressions_that_never_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bounds, "may_fail", lambda bounds, expr: False)
    assert any("PE3404" in line for seed in range(11) for line in lint_proofs.tried(seed)[0])
