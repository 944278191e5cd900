"""a test that checks nothing

It expects nothing, or only what holds whatever the policy does: a test like this passes for ever.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_EXPECTS = (
    syntax.ExpectOn,
    syntax.ExpectBefore,
    syntax.ExpectRejected,
    syntax.ExpectWaits,
    syntax.ExpectThat,
)


@rule("PE3802", Severity.WARNING, __doc__)
def vacuous_test(subject: Subject) -> Findings:
    """Tests without a step that could fail."""
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
