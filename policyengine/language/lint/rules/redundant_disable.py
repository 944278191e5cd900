"""a `disable` of what does not run

The base of the policy does not have the plugin: `base none` has none, `base filters` no plugin that only scores.
`--fix` removes the line.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.plugin_members import in_base
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, removal, rule


@rule("PE3604", Severity.WARNING, __doc__)
def redundant_disable(subject: Subject) -> Findings:
    """Disabled plugins that the base leaves out."""
    for member in subject.written_as(syntax.Disable):
        if not in_base(subject, member.plugin.text):
            fix = removal(subject.line_of(member), f"remove `disable {member.plugin.text}`")
            yield Finding(f"`base {subject.policy.base}` has no `{member.plugin.text}` to disable", member.span, fix)
