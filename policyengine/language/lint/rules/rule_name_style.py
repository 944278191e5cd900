"""a rule's name that is not in kebab-case

Names of rules stand in events, metrics and `explain` beside those of plugins and of other policies. Words in lower case
with dashes, `memory-headroom`, need no quoting anywhere and sort together.
"""

from __future__ import annotations

import re

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@rule("PE3504", Severity.INFO, __doc__)
def rule_name_style(subject: Subject) -> Findings:
    """The names of the policy and of its rules."""
    named = (syntax.Filter, syntax.Score, syntax.Gang, syntax.Quota, syntax.Permit)
    names = [subject.written.name, *(member.name for member in subject.written.members if isinstance(member, named))]
    for name in names:
        if not _KEBAB.fullmatch(name.text):
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name.text).lower()
            suggestion = re.sub(r"[^a-z0-9]+", "-", words).strip("-")
            hint = f": `{suggestion}`" if suggestion else ""
            yield Finding(f"names of rules are written with dashes{hint}", name.span)
