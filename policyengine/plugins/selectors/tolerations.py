"""Taints and tolerations: which taints a pod tolerates (core/v1 Toleration).

The comparison operators Lt and Gt (KEP-5471) are alpha in 1.36 and off by default: a toleration with them matches
no taint, as in kube-scheduler.
"""

from __future__ import annotations

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
    return toleration.operator == "Exists"


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
