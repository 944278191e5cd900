"""Expressions and texts about one pod on its chosen node: the compiled columns, asked for one row.

There is no second evaluator: what reads the node is lowered as for a filter, over a frame of the node's row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from policyengine.compiler.columns.column import Failed, Fault, attempt
from policyengine.compiler.columns.frame import Decision, Frame
from policyengine.compiler.lower.hoists import Hoists
from policyengine.compiler.lower.scope import Scope
from policyengine.compiler.rules.texts import Text
from policyengine.language import ir
from policyengine.language.types import Kind, Shape
from policyengine.language.values import optional

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot

_NOWHERE = Failed(Fault.FAILED, "the node is not known")


class PlacedValue:
    """An expression that may read the chosen node."""

    def __init__(self, expr: ir.Expr, scope: Scope) -> None:
        self._hoists = Hoists()
        self._is_optional = expr.type.kind is Kind.OPTIONAL
        reads_node = expr.shape is not Shape.SCALAR
        self._scalar = None if reads_node else scope.closure(expr)
        self._vector = scope.lower(expr, self._hoists) if reads_node else None

    def of(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> Any:
        """The value, or a `Failed`."""
        decision = Decision(pod, snapshot)
        if self._scalar is not None:
            return attempt(self._scalar, decision)
        assert self._vector is not None
        row = snapshot.nodes.row_of.get(node_name)
        if row is None:
            return _NOWHERE
        with np.errstate(all="ignore"):
            column = self._vector(Frame(snapshot.nodes, np.array([row]), self._hoists.columns(decision)))
            value = column.at(0)
        return optional(value) if self._is_optional and not isinstance(value, Failed) else value


class PlacedText:
    """A text whose expressions may read the chosen node; one without a value shows why in its place."""

    def __init__(self, template: ir.Template, scope: Scope) -> None:
        self._hoists = Hoists()
        self._text = Text(template, scope, self._hoists)

    def of(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> str:
        """The text."""
        decision = Decision(pod, snapshot)
        row = snapshot.nodes.row_of.get(node_name)
        if not self._text.differs or row is None:
            return self._text.of(decision)
        return self._text.at(snapshot.nodes, self._hoists.columns(decision), np.array([row]))[0]
