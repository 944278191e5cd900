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

from policyengine.cluster.node_objects import Taint
from policyengine.cluster.pod_objects import Toleration

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


class TaintTable:
    """For each distinct set of taints, how many of these effects the pod does not tolerate; grows with the sets."""

    __slots__ = ("_counts", "_effects", "_tolerations")

    def __init__(self, tolerations: Sequence[Toleration], effects: frozenset[str]) -> None:
        self._tolerations = tolerations
        self._effects = effects
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def counts(self, taint_sets: Sequence[tuple[Taint, ...]]) -> NDArray[np.int64]:
        """`int64[sets]`"""
        known = len(self._counts)
        if known < len(taint_sets):
            new = [len(untolerated(self._tolerations, taints, self._effects)) for taints in taint_sets[known:]]
            self._counts = np.concatenate([self._counts, np.array(new, dtype=np.int64)])
        return self._counts
