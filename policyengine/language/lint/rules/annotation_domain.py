"""an annotation that is written without a domain

Keys without a domain are for users' own annotations; what a component writes carries the domain of its owner, so that
two never write the same key: `example.com/placed-by`.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3516", Severity.WARNING, __doc__)
def annotation_domain(subject: Subject) -> Findings:
    """The keys of `bind { annotations }`."""
    for member in subject.written_as(syntax.BindAnnotations):
        for name, _ in member.annotations:
            if "/" not in name.text:
                yield Finding(f"`{name.text}` has no domain: write `example.com/{name.text}`", name.span)
