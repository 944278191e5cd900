"""the same condition required twice

Two filters ask the same of the same pods. The second never refuses anything that the first let through, and which of
the two names a refusal depends on their order.
"""

from __future__ import annotations

from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, rule
from policyengine.language.syntax import Span


@rule("PE3005", Severity.WARNING, __doc__)
def duplicate_require(subject: Subject) -> Findings:
    """Equal conditions in filters with the same `when`, or with none."""
    first: dict[tuple[int | None, int], tuple[str, Span]] = {}
    for filter_ in subject.own(subject.policy.filters):
        when = subject.meanings.of(filter_.when) if filter_.when is not None else None
        for require in filter_.requires:
            condition = subject.meanings.of(require.condition)
            known = first.get((None, condition)) or first.get((when, condition))
            if known is not None and known[0] != filter_.name:
                related = (Related(known[1], "required here already"),)
                yield Finding(f"`{known[0]}` requires the same", require.condition.span, None, related)
            first.setdefault((when, condition), (filter_.name, require.condition.span))
