"""a text compared in a case it never has

`lowerAscii()` gives no upper case letter, so it never equals, contains or begins with a text that has one; likewise
`upperAscii()`.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Severity, Subject, rule

_CASES = {"lowerAscii": str.lower, "upperAscii": str.upper}
_COMPARES = frozenset({"_==_", "_!=_", "startsWith", "endsWith", "contains"})


@rule("PE3509", Severity.WARNING, __doc__)
def never_in_case(subject: Subject) -> Findings:
    """Comparisons of a folded text with a literal in the other case."""
    for call in subject.parts_of(ir.Call):
        if call.function in _COMPARES:
            for folded, literal in (call.args, call.args[::-1]):
                if _never(folded, literal):
                    yield Finding("the text on the other side never has this case", literal.span)


def _never(folded: ir.Expr, literal: ir.Expr) -> bool:
    if not (isinstance(folded, ir.Call) and folded.function in _CASES and isinstance(literal, ir.Const)):
        return False
    value = literal.value
    return isinstance(value, str) and value.isascii() and _CASES[folded.function](value) != value
