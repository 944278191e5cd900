"""a name that is easily taken for another one

The name differs from another name of the policy, from a root of the schema or from a function only in upper and lower
case or underscores: `gpu_count` beside `gpuCount`, `Node` beside `node`. A slip of the finger then reads the wrong one.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.functions import FUNCTIONS
from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, rule
from policyengine.language.schema import ROOTS


@rule("PE3503", Severity.WARNING, __doc__)
def confusable_name(subject: Subject) -> Findings:
    """Names that are equal to another one once folded."""
    given = {_folded(name): f"the name `{name}` of the schema" for name in ROOTS}
    given |= {_folded(name): f"the function `{name}`" for name in FUNCTIONS if name.isidentifier()}
    seen: dict[str, syntax.NameText] = {}
    for member in subject.written.members:
        if not isinstance(member, syntax.Param | syntax.Let | syntax.Function):
            continue
        name, folded = member.name, _folded(member.name.text)
        if folded in given:
            yield Finding(f"`{name.text}` is easily taken for {given[folded]}", name.span)
        elif folded in seen:
            related = (Related(seen[folded].span, "this one"),)
            yield Finding(f"`{name.text}` is easily taken for `{seen[folded].text}`", name.span, None, related)
        seen.setdefault(folded, name)


def _folded(name: str) -> str:
    return name.replace("_", "").lower()
