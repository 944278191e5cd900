"""Taints and tolerations: which taints a pod tolerates (core/v1 Toleration).

The operators Gt and Lt (KEP-5471, gate TaintTolerationComparisonOperators) compare the taint's value with the
toleration's, both as integers. An API server whose gate is off takes no pod with them, so they need no switch here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.journal import ValueTable
from policyengine.cluster.node_objects import Taint
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_objects import Toleration
from policyengine.framework.changes import at
from policyengine.framework.status import Rows

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
HARD: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""The effects that keep a pod off a node."""
_DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""What a cordoned node amounts to."""


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations matches the taint."""
    return any(_matches(toleration, taint) for toleration in tolerations)


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint], effects: frozenset[str]) -> list[Taint]:
    """The taints of these effects that none of the tolerations matches."""
    return [taint for taint in taints if taint.effect in effects and not tolerates(tolerations, taint)]


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if toleration.operator in ("Gt", "Lt"):
        given, bound = _integer(taint.value), _integer(toleration.value)
        if given is None or bound is None:
            return False
        return given > bound if toleration.operator == "Gt" else given < bound
    return toleration.operator == "Exists"


def _integer(text: str) -> int | None:
    """The integer of 64 bits that the text is in its shortest form (content.IsDecimalInteger); None for any other."""
    if _DECIMAL.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class TaintCounts:
    """How many taints of some effects the nodes have that a pod does not tolerate."""

    def __init__(self, tolerations: Sequence[Toleration], effects: frozenset[str]) -> None:
        self._table = ValueTable(lambda taints: len(untolerated(tolerations, taints, effects)), np.int64)

    def at(self, nodes: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """`int64[rows]`"""
        return self._table.at(at(nodes.derived.ids("taints", ""), rows), nodes.derived.values("taints", ""))
