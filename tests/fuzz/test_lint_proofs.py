"""What lint says of never and always is so in generated clusters; a bound that forgets something is found out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from policyengine.language import ir
from policyengine.language.bounds import Bounds
from policyengine.language.functions.answer_bounds import Interval
from tests.fuzz.lint_proofs import main, tried


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_no_finding_about_a_generated_policy_is_false(first: int) -> None:
    found = [tried(seed) for seed in range(first, first + 20)]
    assert [line for lines, _ in found for line in lines] == []
    assert sum(counts.get("findings", 0) for _, counts in found) > 40


def of_without_nan(of: Callable[[Bounds, ir.Expr], Interval]) -> Callable[[Bounds, ir.Expr], Interval]:
    return lambda bounds, expr: of(bounds, expr)._replace(nan=False)


def test_bounds_without_nan_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bounds, "of", of_without_nan(Bounds.of))
    assert any("PE3" in line for seed in range(60) for line in tried(seed)[0])


def test_expressions_that_never_fail_are_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Bounds, "may_fail", lambda bounds, expr: False)
    assert main(["8", "3"]) == 1
    assert "PE3404" in capsys.readouterr().out
