"""`pod.queuedAt` and `pod.attempts` where they have no value: a gang is told before its members are queued.

Found before a policy is loaded, not at run time.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Severity, register
from policyengine.language.ir.ir_walk import expressions_in, fields

NOT_BOUND = "PE2903"
register(
    {
        NOT_BOUND: (
            "a field that has no value here",
            "`pod.queuedAt` and `pod.attempts` change while a pod waits; which gang it belongs to does not, and is\n"
            "told before the pod is queued.",
        ),
    }
)
WAITING = frozenset({("pod", "queuedAt"), ("pod", "attempts")})


def unbound(policy: ir.Policy) -> list[Diagnostic]:
    """A finding for each use of such a field, through lets too."""
    values = {let.name: let.value for let in policy.lets}
    own = policy.source.file
    return [
        Diagnostic(NOT_BOUND, Severity.ERROR, f"`{'.'.join(field.path)}` has no value in a gang", own, expr.span)
        for gang in policy.gangs
        for expr in expressions_in(gang)
        for field in fields(expr, values.get)
        if field.path in WAITING
    ]
