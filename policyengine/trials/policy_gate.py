"""The tests of a policy, run before it serves: one that fails them is not loaded.

Params have their defaults: what is set from outside is the operator's, and no reason to refuse the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from policyengine.catalogue import CATALOGUE, CompileResult
from policyengine.compiler.assemble import Catalogue
from policyengine.compiler.finding_codes import FAILED_TEST
from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Severity
from policyengine.trials.policy_test import STEPS, Outcome, TestedPolicy, in_file_tests, run_tests

MOST_TESTS: Final = 200
"""Tests of one policy that are run before it is loaded; `policyengine test` runs them all."""


def held_to_tests(result: CompileResult, catalogue: Catalogue = CATALOGUE) -> CompileResult:
    """What was compiled; without its profiles, and with a finding, where a test of it fails."""
    failed = [] if result.failed else failed_tests(result.policies, catalogue)
    return replace(result, profiles=[], diagnostics=[*result.diagnostics, *failed]) if failed else result


def failed_tests(policies: Iterable[ir.Policy], catalogue: Catalogue = CATALOGUE) -> list[Diagnostic]:
    """A finding for the first failing test of each policy, at the expectation that did not hold. Pure, and bounded in
    work: `MOST_TESTS` tests a policy of `STEPS` steps each."""
    return [finding for policy in policies for finding in _failed(policy, catalogue)]


def _failed(policy: ir.Policy, catalogue: Catalogue) -> Iterator[Diagnostic]:
    tested = TestedPolicy(policy, in_file_tests(policy)[:MOST_TESTS], catalogue=catalogue)
    for outcome in run_tests(tested, steps=STEPS, stop_at_first=True):
        if not outcome.passed:
            yield _finding(outcome)


def _finding(outcome: Outcome) -> Diagnostic:
    failure = outcome.failures[0]
    message = f"test `{outcome.name}` of policy `{outcome.policy}` fails: {failure.message}"
    return Diagnostic(FAILED_TEST, Severity.ERROR, message, outcome.file, failure.span)
