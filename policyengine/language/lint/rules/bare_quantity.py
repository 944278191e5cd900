"""an amount without a unit

A bare number beside memory is bytes and beside cpu is cores. `node.free.memory >= 2` asks for two bytes, and
`node.free.cpu > 500` for five hundred cores; `1073741824` is `1Gi`, which can be read. `--fix` writes whole amounts of
memory with their suffix.
"""

from __future__ import annotations

from policyengine.language import ir
from policyengine.language.lint.rule import Finding, Findings, Fix, Severity, Subject, instead, rule
from policyengine.language.types import Kind

_SUFFIXES = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("T", 10**12), ("G", 10**9), ("M", 10**6))
_MANY_CORES = 100_000
"""Millicores."""


@rule("PE3511", Severity.WARNING, __doc__)
def bare_quantity(subject: Subject) -> Findings:
    """Literals of a dimension that are digits only. 0 needs no unit, and a few cores read well."""
    for part in subject.parts_of(ir.Const):
        if not (part.type.is_quantity and isinstance(part.value, int) and part.value):
            continue
        text = subject.text(part.span)
        if not text.isdecimal():
            continue
        if part.type.kind is Kind.CPU:
            if part.value >= _MANY_CORES:
                hint = f"; `{text}m` is {int(text) / 1000:g}"
                yield Finding(f"`{text}` is {text} cores{hint}", part.span)
        else:
            shown = "byte" if part.value == 1 else "bytes"
            yield Finding(f"`{text}` is {text} {shown}: write the unit", part.span, _suffixed(part))


def _suffixed(const: ir.Const) -> Fix | None:
    value = const.value
    assert isinstance(value, int)
    for suffix, size in _SUFFIXES:
        if value % size == 0:
            return instead(const.span, f"{value // size}{suffix}")
    return None
