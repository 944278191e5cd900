"""Runs the tests in a policy's text, and says what became of them."""

from __future__ import annotations

from policyengine.compiler.coverage import Coverage
from policyengine.language import ir
from policyengine.language.diagnostics import Source, render
from policyengine.policy_compiler import checked
from policyengine.trials.policy_test import STEPS, Outcome, TestedPolicy, in_file_tests, run_tests

NODE = "{ allocatable: {cpu: 4, memory: 8Gi, pods: 10} }"
A = f'given node "a" {NODE}'


def policy_of(text: str) -> ir.Policy:
    source = Source("x.policy", text)
    policies, findings = checked(source)
    assert not findings, render(findings, source)
    return policies[0]


def outcome_of(steps: str, members: str = "", limit: int = STEPS) -> Outcome:
    """What becomes of a test with these steps, in a policy with these members."""
    text = f'policy "p" {{\n{members}\ntest "t" {{\n{steps}\n}}\n}}'
    policy = policy_of(text)
    (outcome,) = run_tests(TestedPolicy(policy, in_file_tests(policy)), steps=limit)
    return outcome


def messages(steps: str, members: str = "") -> list[str]:
    return [failure.message for failure in outcome_of(steps, members).failures]


def covered(members: str) -> Coverage:
    """What the tests among the members see."""
    policy = policy_of(f'policy "p" {{\n{members}\n}}')
    coverage = Coverage(policy)
    for outcome in run_tests(TestedPolicy(policy, in_file_tests(policy)), coverage=coverage):
        assert outcome.passed, outcome.failures
    return coverage


def missing(members: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(point.what, point.missing) for point in covered(members).points if point.missing]
