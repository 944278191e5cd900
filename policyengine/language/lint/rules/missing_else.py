"""a require that does not say why it refuses

The text after `else` stands in the pod's event and condition, and in `explain`. Without one they quote the condition,
which its author understands, and the owner of the pod does not.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3506", Severity.INFO, __doc__)
def missing_else(subject: Subject) -> Findings:
    """Requires without `else`, or with an empty one."""
    for filter_ in subject.written_as(syntax.Filter):
        for require in filter_.requires:
            text = require.otherwise
            if text is None or not any(not isinstance(part, str) or part.strip() for part in text.parts):
                yield Finding('say why in a word to the pod\'s owner: `else "…"`', require.condition.span)
