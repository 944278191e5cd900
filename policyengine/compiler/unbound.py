"""`pod.queuedAt` where it has no value: only the queue's keys know when a pod was queued.

Found before a policy is loaded, not at run time.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.compiler.walk import expressions_of
from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Severity, register
from policyengine.language.ir_walk import fields

NOT_BOUND = "PE2903"
register(
    {
        NOT_BOUND: (
            "a field that has no value here",
            "`pod.queuedAt` has a value in the queue's `order by` only.",
        ),
    }
)
QUEUED_AT = ("pod", "queuedAt")


def unbound(policy: ir.Policy, file: str) -> list[Diagnostic]:
    """A finding for each use of such a field, through lets too."""
    values = {let.name: let.value for let in policy.lets}
    return [
        Diagnostic(NOT_BOUND, Severity.ERROR, f"`{'.'.join(field.path)}` has no value here", file, expr.span)
        for expr in _rules(policy)
        for field in fields(expr, values.get)
        if field.path == QUEUED_AT
    ]


def _rules(policy: ir.Policy) -> Iterator[ir.Expr]:
    found: list[ir.Expr | None] = []
    for rule in policy.filters:
        found.append(rule.when)
        for require in rule.requires:
            found += (require.condition, require.on_error, *expressions_of(require.otherwise))
    for score in policy.scores:
        found += (score.when, score.value, score.on_error)
    for gang in policy.gangs:
        found += (gang.when, gang.key, gang.min, gang.timeout)
    yield from (expr for expr in found if expr is not None)
