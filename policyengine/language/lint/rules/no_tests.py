"""a policy without tests

Nothing says what the policy is for in a way that a machine can check: `policyengine test` has nothing to run, and a
change that breaks it loads. A `test` beside the rules takes a few lines, and runs before every reload.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_RULES = (syntax.Filter, syntax.Score, syntax.Gang, syntax.Quota, syntax.Permit, syntax.Queue, syntax.Preempt)


@rule("PE3801", Severity.INFO, __doc__)
def no_tests(subject: Subject) -> Findings:
    """Policies with rules and no `test`."""
    members = subject.written.members
    if any(isinstance(member, _RULES) for member in members) and not subject.written_as(syntax.Test):
        yield Finding(f"`{subject.written.name.text}` has rules and no test", subject.written.name.span)
