"""a reason that quotes no value

The condition compares amounts, and the text says only that they do not fit. How much was asked for and how much there
is tells the owner of the pod what to change: `else "needs {headroom} spare memory, has {node.free.memory}"`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.ir.ir_walk import walk
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule
from policyengine.language.types import Shape

_ORDERINGS = frozenset({"_<_", "_<=_", "_>_", "_>=_"})


@rule("PE3507", Severity.INFO, __doc__)
def mute_else(subject: Subject) -> Findings:
    """Texts without `{…}` behind a comparison of what a node has."""
    for filter_ in subject.own(subject.policy.filters):
        for require in filter_.requires:
            text = require.otherwise
            if text is None or not text.parts or not all(isinstance(part, str) for part in text.parts):
                continue
            if _ORDERINGS.isdisjoint(subject.readings.of(require.condition).functions):
                continue
            if any(_compares(part) for part in walk(require.condition, subject.let_value)):
                yield Finding("the text quotes none of the values that are compared", text.span)


def _compares(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and expr.function in _ORDERINGS and expr.shape is Shape.NODE
