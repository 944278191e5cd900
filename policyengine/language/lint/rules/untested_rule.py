"""a rule that no test exercises

The policy has tests, and none of them is about this rule: no pod is `rejected by` the filter, quota or permit, none
`waits` for the gang, and none has two nodes to choose between for a score. `policyengine test --coverage` tells which
branches were taken; this tells what cannot have been.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3803", Severity.INFO, __doc__)
def untested_rule(subject: Subject) -> Findings:
    """Rules that no expectation of any test can be about."""
    tests = subject.written_as(syntax.Test)
    if not tests:
        return  # PE3801
    steps = [step for test in tests for step in test.steps]
    rejecting = {step.rule.text for step in steps if isinstance(step, syntax.ExpectRejected) and step.rule}
    that = any(isinstance(step, syntax.ExpectThat) for step in steps)
    waits = any(isinstance(step, syntax.ExpectWaits) for step in steps)
    for member in subject.written.members:
        match member:
            case syntax.Filter() | syntax.Quota() if member.name.text not in rejecting and not that:
                yield Finding(f"no test has a pod rejected by `{member.name.text}`", member.name.span)
            case syntax.Gang() | syntax.Permit() if not (waits or that or member.name.text in rejecting):
                yield Finding(f"no test has a pod that waits for `{member.name.text}`", member.name.span)
            case syntax.Score() if not that and not any(map(_chooses, tests)):
                yield Finding(f"no test has nodes between which `{member.name.text}` could decide", member.name.span)
            case _:
                pass


def _chooses(test: syntax.Test) -> bool:
    nodes = sum(isinstance(step, syntax.GivenNode) for step in test.steps)
    return nodes > 1 and any(isinstance(step, syntax.ExpectOn) for step in test.steps)
