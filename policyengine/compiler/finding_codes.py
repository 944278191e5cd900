"""The findings of the compiler: their codes and pages, and those that need only the checked policy.

What the checker can say alone has its codes in `language.checking`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.diagnostics import Diagnostic, Severity, register
from policyengine.language.ir.ir_walk import expressions_in, fields

WRONG_PARAM = "PE2901"
WRONG_ARGUMENTS = "PE2902"
FAILED_TEST = "PE2950"

register(
    {
        WRONG_PARAM: (
            "a parameter cannot have the value given",
            "A param is set from outside (`--param`, `params.yaml`) to a value of its type, within its `range` or\n"
            "among its `values`. Names of params that the policy does not have are refused.",
        ),
        WRONG_ARGUMENTS: (
            "a plugin refuses its arguments",
            "The arguments fit the plugin's schema one by one, but not together. The message is the plugin's.",
        ),
        FAILED_TEST: (
            "a test of the policy fails",
            "The tests in a policy are run before it serves; what fails them is not loaded, and what served before\n"
            "goes on. `policyengine test` shows what was expected, what happened and why.",
        ),
    }
)


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
