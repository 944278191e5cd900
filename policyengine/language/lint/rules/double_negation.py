"""a negation that can be left out

`!!x` is `x`; `!(a == b)` is `a != b`, and reads as what it means. `--fix` writes it so.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, instead, rule

_OPPOSITE = {"==": "!=", "!=": "=="}


@rule("PE3009", Severity.INFO, __doc__)
def double_negation(subject: Subject) -> Findings:
    """`!` in front of `!`, `==` or `!=`. Of `<` the opposite is no `>=` where NaN is about."""
    for node in subject.nodes_of(syntax.Unary):
        if node.op != "!":
            continue
        match node.operand:
            case syntax.Unary(op="!", operand=inner):
                text = subject.text(inner.span)
                yield Finding("two negations cancel each other", node.span, instead(node.span, f"{text}"))
            case syntax.Binary(op="==" | "!=" as op, left=left, right=right):
                opposite = _OPPOSITE[op]
                text = f"({subject.text(left.span)} {opposite} {subject.text(right.span)})"
                yield Finding(f"a negated `{op}` is `{opposite}`", node.span, instead(node.span, text))
            case _:
                pass
