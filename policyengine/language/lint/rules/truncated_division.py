"""an int division that loses the fraction before it is scaled

Between ints `/` cuts the fraction off: `node.podCount / 110 * 100` is 0 until the node is full. Write `100 *` first, or
use doubles: `100 * ratio(double(node.podCount), 110.0)`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule
from policyengine.language.types import INT


@rule("PE3106", Severity.WARNING, __doc__)
def truncated_division(subject: Subject) -> Findings:
    """Int divisions below `*`, or made a double afterwards."""
    for call in subject.parts_of(ir.Call):
        match call.function, call.args:
            case "_*_", args if call.type == INT:
                yield from (_finding(arg) for arg in args if _divides(arg))
            case "double", (arg,) if _divides(arg):
                yield _finding(arg)
            case _:
                pass


def _divides(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.function == "_/_" and expr.type == INT


def _finding(division: ir.Expr) -> Finding:
    return Finding("dividing ints cuts the fraction off before it is used: divide doubles, or last", division.span)
