"""an error that lets a node through

`on error true` in a filter admits the node exactly where the condition could not be computed: on a division by zero, a
missing domain, an overflow. A filter is there to refuse; without `on error` it does, and says why.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3403", Severity.WARNING, __doc__)
def hidden_error(subject: Subject) -> Findings:
    """Requires whose `on error` is the literal `true`."""
    for filter_ in subject.own(subject.policy.filters):
        for require in filter_.requires:
            if isinstance(require.on_error, ir.Const) and require.on_error.value is True:
                message = "where the condition fails to have a value, the node is let through"
                yield Finding(message, require.on_error.span)
