"""The parts of a rule that are the same for every node: computed once for a pod, and what its columns are kept by.

The values of the hoisted parts that read the pod are the rule's signature: two pods that give equal values get
equal columns. Parts that read the cluster or the time are asked again when those move.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from policyengine.compiler.columns.column import Column, Failed, attempt, single
from policyengine.compiler.columns.frame import Decision, Scalar, Vector
from policyengine.compiler.columns.object_fields import Amounts
from policyengine.language import ir
from policyengine.language.ir.ir_walk import free_locals, key
from policyengine.language.types import Reach, Type
from policyengine.language.values import Optional


@dataclass(frozen=True, slots=True)
class Part:
    """One hoisted expression."""

    scalar: Scalar
    type: Type

    def column(self, decision: Decision) -> Column:
        """Its value as a column of all rows."""
        return single(attempt(self.scalar, decision), self.type)


_NOBODY: Any = None
"""The pod of what depends on none."""


class Hoists:
    """Collects the hoisted parts of one rule while it is lowered."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.domains: list[Vector] = []
        """The labels whose domains the rule asks about."""
        self.follows_all = False
        """Whether a row may follow any other: a domain's answer depends on another domain's."""
        self._places: dict[Hashable, int] = {}

    def hoist(self, expr: ir.Expr, scalar: Scalar) -> Vector:
        """The closure that finds the value of `expr`, whose closure is `scalar`, in the frame; constants are folded."""
        part = Part(scalar, expr.type)
        if expr.reach is Reach.CONSTANT and (isinstance(expr, ir.Const) or not free_locals(expr)):
            constant = part.column(Decision(_NOBODY))
            return lambda frame: constant
        place = self._place(expr, part)
        return lambda frame: frame.hoisted[place]

    def _place(self, expr: ir.Expr, part: Part) -> int:
        place = self._places.setdefault(key(expr), len(self.parts))
        if place == len(self.parts):
            self.parts.append(part)
        return place

    def columns(self, decision: Decision) -> tuple[Column, ...]:
        """The values of all parts for a decision, in order, as a frame wants them."""
        return tuple(part.column(decision) for part in self.parts)


def key_of(value: Any) -> Hashable:
    """A hashable stand-in for a value: equal only for values no expression can tell apart."""
    if isinstance(value, float):
        return value if value else (value, math.copysign(1.0, value))
    if isinstance(value, bool | int | str | Failed | Amounts) or value is None:
        return value
    if isinstance(value, Optional):
        return (key_of(value.content),) if value.present else ()
    if isinstance(value, Mapping):
        return tuple((name, key_of(content)) for name, content in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(key_of, value))
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value  # type: ignore[no-any-return]
