"""a value compared, or combined, with itself

`x == x`, `x - x`, `ratio(x, x)` and `a && a` have a result that is known beforehand. One side was meant to be something
else, such as `node` in the place of `pod`.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyengine.language import ir
from policyengine.language.diagnostics import Severity
from policyengine.language.ir_walk import key
from policyengine.language.lint.rule import Finding, rule
from policyengine.language.lint.subject import Subject

_OPERATORS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_-_", "_/_", "ratio", "min", "max"})


@rule("PE3008", Severity.WARNING, __doc__)
def self_comparison(subject: Subject) -> Iterator[Finding]:
    """Operators of which both operands mean the same."""
    for part in subject.parts:
        match part:
            case ir.Call(function=function, args=(left, right)) if function in _OPERATORS:
                same = not isinstance(left, ir.Const) and not _draws(left) and key(left) == key(right)
            case ir.Logic():
                same = len({key(operand) for operand in part.operands}) < len(part.operands)
            case ir.Conditional():
                same = key(part.then) == key(part.otherwise)
            case _:
                continue
        if same:
            shown = "both branches are the same" if isinstance(part, ir.Conditional) else "both operands are the same"
            yield Finding(f"{shown}, so the result is known beforehand", part.span)


def _draws(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.function == "random"
