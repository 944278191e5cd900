"""a node singled out by its name

Nodes come and go, and their names with them; a rule that names one stops meaning anything when it is replaced, without
a word. Give the node a label and ask for that.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_COMPARES = frozenset({"_==_", "_!=_", "@in"})


@rule("PE3517", Severity.INFO, __doc__)
def node_by_name(subject: Subject) -> Findings:
    """`node.name`, or its hostname label, compared with literals."""
    for call in subject.parts_of(ir.Call):
        if call.function in _COMPARES:
            left, right = call.args
            if (_is_name(left) and _is_literal(right)) or (_is_name(right) and _is_literal(left)):
                yield Finding("a node's name is written into the policy: use a label", call.span)


def _is_name(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Field) and expr.path == ("node", "name")


def _is_literal(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.ListExpr):
        return any(isinstance(item, ir.Const) for item, _ in expr.items)
    return isinstance(expr, ir.Const)
