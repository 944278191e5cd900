"""a param, let or function that nothing uses

It costs a reader's attention, and often it is the trace of a mistake: the rule that should read it reads another one.
`--fix` removes unused lets and functions; a param may be set from outside, so removing it is yours to do.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, removal, rule

_KINDS = {syntax.Param: "param", syntax.Let: "let", syntax.Function: "function"}


@rule("PE3501", Severity.WARNING, __doc__)
def unused_name(subject: Subject) -> Findings:
    """Names that stand nowhere else in the policy. What only a test sets is unused as well."""
    used = {node.name for node in subject.nodes_of(syntax.Name)}
    used |= {node.function for node in subject.nodes_of(syntax.Call) if node.target is None}
    for member in subject.written.members:
        if isinstance(member, syntax.Param | syntax.Let | syntax.Function) and member.name.text not in used:
            name = member.name
            fix = None
            if not isinstance(member, syntax.Param):
                fix = removal(subject.line_of(member), f"remove `{name.text}`")
            yield Finding(f"the {_KINDS[type(member)]} `{name.text}` is never used", name.span, fix)
