"""a gang that can never be complete

The key is different for every pod (`pod.name`, `pod.uid`), so each pod is a gang by itself, and `min` is more than
one: none of them is ever placed. The key is what the members have in common: a label, the owner.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_UNIQUE = frozenset({("pod", "name"), ("pod", "uid")})
_KEEPING = frozenset({"_+_", "lowerAscii", "upperAscii", "trim", "string"})
"""Functions after which different values are still different, or nearly always."""


@rule("PE3301", Severity.WARNING, __doc__)
def gang_of_one(subject: Subject) -> Findings:
    """Gangs whose key keeps the pod's own name apart, and whose `min` may be over one."""
    for gang in subject.own(subject.policy.gangs):
        if subject.bounds.of(gang.min).high > 1 and _is_unique(subject, gang.key):
            message = "every pod has a key of its own, so a gang has one member, and `min` may be more"
            yield Finding(message, gang.key.span)


def _is_unique(subject: Subject, expr: ir.Expr) -> bool:
    for part in walk(expr, subject.let_value):
        if isinstance(part, ir.Call) and part.function not in _KEEPING:
            return False
        if isinstance(part, ir.Conditional | ir.Comprehension | ir.OptMap):
            return False
        if isinstance(part, ir.Field) and part.path in _UNIQUE:
            return True
    return False
