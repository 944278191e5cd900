"""a value compared, or combined, with itself

`x == x`, `x - x`, `ratio(x, x)` and `a && a` have a result that is known beforehand. One side was meant to be something
else, such as `node` in the place of `pod`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_OPERATORS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_-_", "_/_", "ratio", "min", "max"})


@rule("PE3008", Severity.WARNING, __doc__)
def self_comparison(subject: Subject) -> Findings:
    """Operators of which both operands mean the same."""
    meaning = subject.meanings.of
    for call in subject.parts_of(ir.Call):
        if call.function in _OPERATORS and len(call.args) == 2:
            left, right = call.args
            if not isinstance(left, ir.Const) and not _draws(left) and meaning(left) == meaning(right):
                yield _finding("operands", call)
    for logic in subject.parts_of(ir.Logic):
        if len(set(map(meaning, logic.operands))) < len(logic.operands):
            yield _finding("operands", logic)
    for choice in subject.parts_of(ir.Conditional):
        if meaning(choice.then) == meaning(choice.otherwise):
            yield _finding("branches", choice)


def _finding(both: str, expr: ir.Expr) -> Finding:
    return Finding(f"both {both} are the same, so the result is known beforehand", expr.span)


def _draws(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.function == "random"
