"""The tests of a policy."""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_RULES = (syntax.Rule, syntax.Queue, syntax.Preempt)


@rule("PE3801", Severity.INFO)
def no_tests(subject: Subject) -> Findings:
    """a policy without tests

    Nothing says what the policy is for in a way that a machine can check: `policyengine test` has nothing to run, and a
    change that breaks it loads. A `test` beside the rules takes a few lines, and runs before every reload.
    """
    members = subject.written.members
    if any(isinstance(member, _RULES) for member in members) and not subject.written_as(syntax.Test):
        yield Finding(f"`{subject.written.name.text}` has rules and no test", subject.written.name.span)


_EXPECTS = (
    syntax.ExpectOn,
    syntax.ExpectBefore,
    syntax.ExpectRejected,
    syntax.ExpectWaits,
    syntax.ExpectThat,
)


@rule("PE3802", Severity.WARNING)
def vacuous_test(subject: Subject) -> Findings:
    """a test that checks nothing

    It expects nothing, or only what holds whatever the policy does: a test like this passes for ever.

    By definition: every `expect` compares a literal, or a pod with itself.
    """
    for test in subject.written_as(syntax.Test):
        expects = [step for step in test.steps if isinstance(step, _EXPECTS)]
        if not expects:
            yield Finding(f"`{test.name.text}` expects nothing", test.name.span)
        elif all(_holds_anyway(step) for step in expects):
            yield Finding(f"`{test.name.text}` expects only what always holds", test.name.span)


def _holds_anyway(step: syntax.TestStep) -> bool:
    if isinstance(step, syntax.ExpectThat):
        return isinstance(step.condition, syntax.Literal)
    return isinstance(step, syntax.ExpectBefore) and step.pod.text == step.other.text


@rule("PE3803", Severity.INFO)
def untested_rule(subject: Subject) -> Findings:
    """a rule that no test exercises

    The policy has tests, and none of them is about this rule: no pod is `rejected by` the filter, quota or permit, none
    `waits` for the gang, and none has two nodes to choose between for a score. `policyengine test --coverage` tells
    which branches were taken; this tells what cannot have been.
    """
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
