"""a measured amount clamped to 0 to 100

`clamp(node.free.cpu / 1m, 0, 100)` is 100 for every node with more than 100 millicores to spare: an amount in one unit
leaves 0 to 100 at once. To rank by an amount, `normalize minmax`; to rank by a share, `100 * ratio(free, allocatable)`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule
from policyengine.language.types import Shape

_COARSE = {"cpu": 1_000, "memory": 1 << 30, "storage": 1 << 30}
"""A divisor below this leaves more than 0 to 100 on common nodes."""


@rule("PE3105", Severity.WARNING, __doc__)
def saturated_clamp(subject: Subject) -> Findings:
    """Scores that are a clamp of an amount over a constant, or of `double(amount)`."""
    for score in subject.own(subject.policy.scores):
        match score.value:
            case ir.Call(function="clamp", args=(amount, *_)) if _is_amount(amount):
                message = "the amount is over 100 for nearly every node: rank it by `normalize minmax` instead"
                yield Finding(message, score.value.span)


def _is_amount(expr: ir.Expr) -> bool:
    match expr:
        case ir.Call(function="_/_", args=(amount, ir.Const(value=int() as divisor))) if amount.type.is_quantity:
            return amount.shape is Shape.NODE and divisor < _COARSE[amount.type.kind.value]
        case ir.Call(function="double", args=(amount,)):
            return amount.type.kind.value in ("memory", "storage") and amount.shape is Shape.NODE
        case _:
            return False
