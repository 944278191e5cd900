"""What an expression is evaluated over: a `Decision` for one value, a `Frame` for a column of nodes.

A scalar expression is a closure `(Decision) -> value` that raises `EvaluationError`; a node expression is a
closure `(Frame) -> Column`. Every scalar part of a node expression is hoisted: computed once for the pod, kept in
the rule's state, and met again in the frame as a column of one value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_table import PodTable
from policyengine.cluster.view import Snapshot
from policyengine.compiler.columns.column import Column
from policyengine.language.scalar_evaluator import Evaluation


class Decision(Evaluation):
    """One pod, and what is known beside it. `memo` holds the lets evaluated so far."""

    __slots__ = ("attempts", "frame", "memo", "of_pod", "pod", "queued_at", "snapshot", "victim")

    def __init__(
        self,
        pod: PodInfo,
        snapshot: Snapshot | None = None,
        queued_at: float | None = None,
        attempts: int = 0,
        victim: PodInfo | None = None,
    ) -> None:
        """`queued_at`, `attempts`: what the queue knows, where it asks itself and there is no snapshot. `victim`: the
        pod that may have to make room, in `preempt` only."""
        self.pod = pod
        self.snapshot = snapshot
        self.queued_at = queued_at
        self.attempts = attempts
        self.victim = victim
        self.memo: dict[str, Any] = {}
        self.of_pod: dict[str, Any] = {}
        """The same of lets that read nothing but the pod."""
        self.frame: Frame | None = None
        """All nodes, where what is aggregated over all nodes or pods is kept."""
        self.locals: dict[str, Any] = {}
        self.steps = math.inf

    def about_victim(self, victim: PodInfo) -> Decision:
        """The same about a pod that may have to make room. No let reads of it, so all that is known holds."""
        other = copy(self)
        other.victim = victim
        return other


Scalar = Callable[[Decision], Any]


@dataclass(slots=True, eq=False)
class Frame:
    """Rows of the node table, the hoisted values, and the node lets evaluated so far."""

    nodes: NodeTable
    rows: NDArray[np.int64] | None
    """The rows asked for; None: all of them, in order."""
    hoisted: Mapping[int, Column]
    """Place -> value; see `Hoists`."""
    count: int = field(init=False)
    """How many rows are asked for."""
    memo: dict[str, Any] = field(default_factory=dict, init=False)
    """Let -> its column, or the elements of its list."""
    of_all: Mapping[str, Any] = field(default_factory=dict, init=False)
    """The same for all rows, as far as it is known."""

    def __post_init__(self) -> None:
        self.count = self.nodes.n if self.rows is None else len(self.rows)

    def pick(self, array: NDArray[Any]) -> NDArray[Any]:
        """The asked rows of a column of the node table."""
        return array if self.rows is None else array[self.rows]

    def asked_in(self, frame: Frame) -> Frame:
        """The same rows and lets, as elements of a list that a rule asks for in another frame of the same rows."""
        other = copy(self)
        other.hoisted = frame.hoisted
        return other

    def row_numbers(self) -> NDArray[np.int64]:
        """The asked rows, written out."""
        return np.arange(self.count) if self.rows is None else self.rows


@dataclass(slots=True, eq=False)
class PodFrame(Frame):
    """Pods as the elements of a list: rows of the pod table. What holds for their node is taken from `base`."""

    pods: PodTable
    base: Frame | None = None
    """The nodes the list is asked for, where each node has its own."""
    owners: NDArray[np.int64] | None = None
    """With `base`: in which row of it each pod's node stands, `int64[count]`."""

    def __post_init__(self) -> None:
        self.count = self.pods.n if self.rows is None else len(self.rows)

    def asked_in(self, frame: Frame) -> Frame:
        """The same pods; see `Frame`."""
        other = copy(self)
        other.hoisted, other.base = frame.hoisted, None if self.base is None else frame
        return other

    def pick(self, array: NDArray[Any]) -> NDArray[Any]:
        """The asked rows of a column of the pod table."""
        return array[: self.count] if self.rows is None else array[self.rows]


Vector = Callable[[Frame], Column]
