"""What a template is filled with."""

from __future__ import annotations

from policyengine.language import ir


def expressions_of(template: ir.Template | None) -> tuple[ir.Expr, ...]:
    """The expressions filled into a template."""
    return () if template is None else tuple(part for part in template.parts if not isinstance(part, str))
