"""an operand of `&&` or `||` that changes nothing

What stands beside it decides already: in `p > 5 && p > 3` the second comparison is true wherever the first is, in
`p > 5 || p > 3` the first adds nothing to the second.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Related, Severity, Subject, rule

_MOST = 12
"""Operands of one expression that are compared."""


@rule("PE3007", Severity.WARNING, __doc__)
def redundant_operand(subject: Subject) -> Findings:
    """Pairs of operands of which one implies the other."""
    for logic in subject.parts_of(ir.Logic):
        if len(logic.operands) <= _MOST:
            yield from _pairs(subject, logic)


def _pairs(subject: Subject, logic: ir.Logic) -> Findings:
    truth = subject.truth
    operands = sorted(logic.operands, key=lambda one: one.span.start)
    settled = {id(one) for one in operands if isinstance(one, ir.Const) or truth.impossible(one) or truth.implied(one)}
    said: set[int] = set()
    for one in operands:
        for other in operands:
            if one is other or {id(one), id(other)} & (said | settled):
                continue
            # In `a && b` the implied one is idle, in `a || b` the one that implies.
            idle = truth.implied(one, other) if logic.op == "&&" else truth.implied(other, one)
            later = truth.implied(other, one) if logic.op == "&&" else truth.implied(one, other)
            if idle and not (later and one.span.start < other.span.start):
                said.add(id(one))
                word = "wherever this is true" if logic.op == "||" else "wherever the rest holds"
                message = (
                    f"the other operand is true {word}, so this adds nothing"
                    if logic.op == "||"
                    else f"this is true {word}, so it adds nothing"
                )
                yield Finding(message, one.span, None, (Related(other.span, "because of this"),))
