"""Numbers for what expressions mean, to compare them by."""

from __future__ import annotations

from collections.abc import Hashable

from policyengine.language import ir
from policyengine.language.ir.ir_walk import key
from policyengine.language.lint.per_object import PerObject


class Meanings:
    """Of one policy. Expressions have the same number that mean the same, wherever they stand (`ir_walk.key`)."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.of = PerObject(self._number)

    def _number(self, expr: ir.Expr) -> int:
        return self._numbers.setdefault(key(expr, self.of), len(self._numbers))
