"""a condition compared with `true` or `false`

A bool is a condition already: `x == true` is `x`, `x == false` is `!x`, and `c ? true : false` is `c`.
"""

from __future__ import annotations

from policyengine.language import syntax
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, instead, rule

_TIGHT = (syntax.Name, syntax.Select, syntax.Index, syntax.Call, syntax.Literal)


@rule("PE3010", Severity.INFO, __doc__)
def bool_literal(subject: Subject) -> Findings:
    """Comparisons with a bool literal, and conditionals of two."""
    for node in subject.nodes_of(syntax.Binary):
        if node.op in ("==", "!="):
            for value, literal in ((node.left, node.right), (node.right, node.left)):
                if (truth := _bool(literal)) is not None and _bool(value) is None:
                    text = _written(subject, value, truth == (node.op == "=="))
                    message = f"comparing a condition with `{str(truth).lower()}` adds nothing"
                    yield Finding(message, node.span, instead(node.span, text))
    for choice in subject.nodes_of(syntax.Conditional):
        then, otherwise = _bool(choice.then), _bool(choice.otherwise)
        if then is not None and otherwise is not None and then is not otherwise:
            text = _written(subject, choice.condition, then)
            yield Finding("the condition is the result already", choice.span, instead(choice.span, text))


def _bool(node: syntax.Expr) -> bool | None:
    return node.value if isinstance(node, syntax.Literal) and isinstance(node.value, bool) else None


def _written(subject: Subject, value: syntax.Expr, holds: bool) -> str:
    text = subject.text(value.span)
    text = text if isinstance(value, _TIGHT) else f"({text})"
    return text if holds else f"!{text}"
