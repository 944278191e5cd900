"""a param without a doc comment

A param is what others set, from a `params.yaml` or the command line, without reading the policy. A `///` comment above
it is what they are shown.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule


@rule("PE3505", Severity.INFO, __doc__)
def undocumented_param(subject: Subject) -> Findings:
    """Params without a `///` comment."""
    for param in subject.written_as(syntax.Param):
        if not param.doc.strip():
            yield Finding(f"no `///` comment says what `{param.name.text}` is for", param.name.span)
