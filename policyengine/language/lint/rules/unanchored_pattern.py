"""a pattern that is not anchored

`matches` looks for the pattern anywhere in the text: `"prod"` matches `nonprod` too. Say where it begins and ends,
`"^prod-[0-9]+$"`; for a part of the text that is meant, use `contains`, `startsWith` or `endsWith`, which are faster.
`--fix` does so for patterns without a special character.
"""

from __future__ import annotations

import re

from policyengine.language import syntax
from policyengine.language.lint.rule import Edit, Finding, Findings, Fix, Severity, Subject, rule

_ANCHORED = re.compile(r"(\(\?[a-zA-Z]+\))?\(*(\^|\\A|\.\*)|.*(\$|\\z|\.\*)\)*$", re.DOTALL)
_PLAIN = re.compile(r"[\w /:@=,;%-]+")


@rule("PE3508", Severity.WARNING, __doc__)
def unanchored_pattern(subject: Subject) -> Findings:
    """Literal patterns with an anchor at neither end."""
    for call in subject.nodes_of(syntax.Call):
        if call.function != "matches" or not call.args:
            continue
        pattern = call.args[-1]
        if not isinstance(pattern, syntax.Literal) or not isinstance(pattern.value, str):
            continue
        if not _ANCHORED.match(pattern.value):
            plain = call.target is not None and _PLAIN.fullmatch(pattern.value)
            fix = Fix("write `contains`", (Edit(call.function_span, "contains"),), safe=True) if plain else None
            message = "the pattern may match anywhere in the text: anchor it by `^` and `$`"
            yield Finding(message, pattern.span, fix)
