"""What an expression is evaluated over: a `Decision` for one value, a `Frame` for a column of nodes.

A scalar expression is a closure `(Decision) -> value` that raises `EvaluationError`; a node expression is a
closure `(Frame) -> Column`. Every scalar part of a node expression is hoisted: worked out once for the pod, kept in
the rule's state, and met again in the frame as a column of one value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyengine.compiler.column import Column

if TYPE_CHECKING:
    from policyengine.cluster.node_table import NodeTable
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot
    from policyengine.language import ir


class Decision:
    """One pod, and what is known beside it. `memo` holds the lets evaluated so far."""

    __slots__ = ("locals", "memo", "pod", "queued_at", "snapshot")

    def __init__(self, pod: PodInfo, snapshot: Snapshot | None = None, queued_at: float | None = None) -> None:
        self.pod = pod
        self.snapshot = snapshot
        self.queued_at = queued_at
        self.memo: dict[str, Any] = {}
        self.locals: dict[str, Any] = {}


Scalar = Callable[[Decision], Any]


class Frame:
    """Rows of the node table, the hoisted values, and the node lets evaluated so far."""

    __slots__ = ("count", "hoisted", "memo", "nodes", "rows")

    def __init__(self, nodes: NodeTable, rows: NDArray[np.int64] | None, hoisted: tuple[Column, ...]) -> None:
        self.nodes = nodes
        self.rows = rows
        """The rows asked for; None: all of them, in order."""
        self.count = nodes.n if rows is None else len(rows)
        self.hoisted = hoisted
        self.memo: dict[str, Column] = {}

    def pick(self, array: NDArray[Any]) -> NDArray[Any]:
        """The asked rows of a column of the node table."""
        return array if self.rows is None else array[self.rows]

    def row_numbers(self) -> NDArray[np.int64]:
        """The asked rows, written out."""
        return np.arange(self.count) if self.rows is None else self.rows


Vector = Callable[[Frame], Column]


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean while a policy is lowered. `holes` stand for parts whose value comes from outside."""

    lets: Mapping[str, ir.Let] = field(default_factory=dict)
    params: Mapping[str, object] = field(default_factory=dict)
    policy: Mapping[str, str] = field(default_factory=dict)
    """`policy.name` and `policy.hash`."""
    holes: Mapping[int, str] = field(default_factory=dict)
    """id of an expression -> the local that holds its value."""

    def with_holes(self, holes: Mapping[int, str]) -> Scope:
        """The same scope, with other holes."""
        return Scope(self.lets, self.params, self.policy, holes)
