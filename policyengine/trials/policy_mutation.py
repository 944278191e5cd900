"""Which small changes to a policy its own tests would not notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from policyengine.language.mutants import Mutant, mutants
from policyengine.trials.policy_test import STEPS, TestedPolicy, run_tests

MOST: Final = 200
"""Mutants tried of one policy unless told otherwise; of more, every n-th."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """How many mutants of a policy were tried, of how many, and which of them no test noticed."""

    tried: int
    possible: int
    survivors: tuple[Mutant, ...]

    @property
    def score(self) -> float:
        """The share that was noticed, in percent."""
        return 100.0 * (self.tried - len(self.survivors)) / self.tried if self.tried else 100.0


def mutate(tested: Sequence[TestedPolicy], most: int = MOST, steps: int = STEPS) -> Mutation:
    """Run the tests of one policy against mutants of it, each until one fails. `tested`: the policy with its in-file
    tests, and again with those of suites. Tests that fail of the policy itself must be put right first."""
    found = mutants(tested[0].policy)
    chosen = found if len(found) <= most else [found[at * len(found) // most] for at in range(most)]
    survivors = [mutant for mutant in chosen if _survives(tested, mutant, steps)]
    return Mutation(len(chosen), len(found), tuple(survivors))


def _survives(tested: Sequence[TestedPolicy], mutant: Mutant, steps: int) -> bool:
    return all(
        outcome.passed
        for one in tested
        for outcome in run_tests(replace(one, policy=mutant.policy), steps=steps, stop_at_first=True)
    )
