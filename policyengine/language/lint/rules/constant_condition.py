"""a part of a condition that is always true or never

A comparison inside a condition has only one outcome, so what depends on it does too: a branch of `?:` is never taken,
an operand of `&&` or `||` changes nothing. `node.podCount >= 0` is true of every node.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.ir.ir_walk import children
from policyengine.language.lint.rule import Finding, Findings, Place, Severity, Subject, rule
from policyengine.language.types import BOOL

_WHOLE = frozenset({"when", "condition"})
"""What other rules look at: `when` PE3004, `require` PE3001 and PE3002."""


@rule("PE3006", Severity.WARNING, __doc__)
def constant_condition(subject: Subject) -> Findings:
    """The outermost bool parts with one outcome, below what the other rules look at."""
    for place in subject.places:
        yield from _inside(subject, place)


def _inside(subject: Subject, place: Place) -> Findings:
    holds = subject.holds
    pending = [place.expr]
    while pending:
        part = pending.pop()
        parts = children(part)
        if not parts:
            continue
        whole = part is place.expr and place.what in _WHOLE
        outcome = _outcome(subject, part) if part.type == BOOL and not whole else None
        if outcome is None:
            pending += [one for one in parts if holds(one.span)]
        else:
            shown = "always true" if outcome else "never true"
            yield Finding(f"this is {shown}, so it decides nothing", part.span)


def _outcome(subject: Subject, expr: ir.Expr) -> bool | None:
    """The one outcome of a comparison; None where there are two, and for what is no comparison."""
    if not isinstance(expr, ir.Call | ir.Logic):
        return None
    if subject.truth.impossible(expr):
        return False
    return True if not subject.truth.may_fail(expr) and subject.truth.implied(expr) else None
