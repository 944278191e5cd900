"""The deepest texts end in findings or a profile, soon; `make fuzz` draws more of them, and the longest."""

from __future__ import annotations

import random

import pytest

from policyengine.kube.policies.compiling import compiled
from policyengine.language.diagnostics import Severity
from tests.fuzz.worst_texts import REPEATED, everything, in_its_place, soon


@pytest.mark.parametrize("start", range(0, 30, 10))
def test_an_expression_as_deep_as_it_may_be_in_its_place_is_told_or_taken(start: int) -> None:
    problems = [everything(in_its_place(random.Random(seed))) for seed in range(start, start + 10)]
    assert problems.count("") >= 2, "nearly all are refused"


@pytest.mark.parametrize(
    "construct",
    ["requires", "unknown names", "calls of a large function", "overlays with lets", "policies with imports"],
)
def test_the_longest_text_is_compiled_linted_and_tested_soon(construct: str) -> None:
    soon(lambda: compiled({"p.policy": REPEATED[construct](29_900)}, fail_level=Severity.INFO))
