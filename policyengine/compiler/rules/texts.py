"""The texts of refusals: a rule's `else` with its expressions filled in, or the condition as it was written."""

from __future__ import annotations

import numpy as np

from policyengine.compiler.columns.column import Column, Failed, attempt
from policyengine.compiler.columns.frame import Decision, Frame, Scalar, Vector
from policyengine.compiler.lower.scope import Hoists, Scope
from policyengine.language import ir
from policyengine.language.ir.ir_walk import expressions_in
from policyengine.language.types import Shape, Type
from policyengine.language.values import display


class Text:
    """A template, lowered. `differs`: whether it reads from node to node."""

    def __init__(self, template: ir.Template, scope: Scope, hoists: Hoists) -> None:
        self.differs = any(part.shape is not Shape.SCALAR for part in expressions_in(template))
        self._pieces: tuple[str | tuple[Scalar | None, Vector, Type], ...] = tuple(
            part if isinstance(part, str) else _piece(part, scope, hoists) for part in template.parts
        )

    def of(self, decision: Decision) -> str:
        """The text of a template that reads no node."""
        shown = []
        for piece in self._pieces:
            if isinstance(piece, str):
                shown.append(piece)
            else:
                scalar, _, type_ = piece
                shown.append("" if scalar is None else _shown(attempt(scalar, decision), type_))
        return "".join(shown)

    def at(self, frame: Frame) -> list[str]:
        """The texts for the rows of a frame."""
        parts = []
        for piece in self._pieces:
            if isinstance(piece, str):
                parts.append([piece] * frame.count)
            else:
                with np.errstate(all="ignore"):
                    column = piece[1](frame)
                parts.append(_all_shown(column, frame.count, piece[2]))
        return list(map("".join, zip(*parts, strict=True)))


def _piece(part: ir.Expr, scope: Scope, hoists: Hoists) -> tuple[Scalar | None, Vector, Type]:
    scalar = scope.closure(part) if part.shape is Shape.SCALAR else None
    return scalar, scope.lower(part, hoists), part.type


def _all_shown(column: Column, rows: int, type_: Type) -> list[str]:
    """Equal amounts are many, and written once."""
    values = column.to_list(rows)
    if column.values.dtype != np.int64:
        return [_shown(value, type_) for value in values]
    shown = {value: _shown(value, type_) for value in set(values)}
    return [shown[value] for value in values]


def _shown(value: object, type_: Type) -> str:
    return f"({value.fault.text})" if isinstance(value, Failed) else display(value, type_)


def unmet(rule: str, condition: str) -> str:
    """What a refusal says where the rule's author wrote nothing: the condition as it was written."""
    return f"{rule}: `{_one_line(condition)}` is false"


def erred(rule: str, condition: str, why: str) -> str:
    """What a refusal says where the condition has no value."""
    return f"{rule}: `{_one_line(condition)}` has no value: {why}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
