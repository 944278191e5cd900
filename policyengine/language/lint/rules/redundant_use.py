"""a `use` that changes nothing

The base of the policy runs the plugin already, with the same weight and the same arguments. `--fix` removes the line.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.plugin_members import in_base, scores_in_base
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, removal, rule


@rule("PE3605", Severity.WARNING, __doc__)
def redundant_use(subject: Subject) -> Findings:
    """Uses without arguments, whose weight is the one that the base gives."""
    uses = {use.span: use for use in subject.policy.uses}
    for member in subject.written_as(syntax.Use):
        use = uses.get(member.span)
        if use is None or use.arguments or not in_base(subject, use.name):
            continue
        facts = subject.plugins[use.name]
        same_weight = use.weight is None or use.weight == facts.default_weight
        scored = scores_in_base(subject, use.name) or not facts.scores
        if same_weight and scored:
            fix = removal(subject.line_of(member), f"remove `use {use.name}`")
            yield Finding(f"`{use.name}` runs like this in `base {subject.policy.base}` already", member.span, fix)
