"""The feasible nodes and what each plugin scores them: the outcome of PreScore, Score and NormalizeScore.

A `Choice` is the node that a pod takes of them, with what was weighed at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policyengine.framework.best_nodes import nearest
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.plugin import Scores
from policyengine.framework.status import Rows

SHOWN: Final = 3
"""Nodes whose scores a choice keeps: the one taken, and those that came next."""
INFEASIBLE: Final = int(np.iinfo(np.int64).min)
"""The total of a node that is not feasible."""
SCORED: Final = "scored"
ONLY: Final = "only"
NOMINATED: Final = "nominated"
PACKED: Final = "packed"
"""How a node is taken: see `Choice.how`."""
EXTENDERS: Final = "(extenders)"
"""Stands for all extenders where a plugin's name would stand."""


class Choice(NamedTuple):
    """The node that a pod takes, and what was weighed: plain values, which outlive the snapshot."""

    how: str
    """`scored`: a node with the highest total. `only`: the only feasible one, not scored. `nominated`: room was made on
    it for the pod, not scored. `packed`: with its gang, where the least room was left."""
    nodes: int
    """How many nodes there were."""
    feasible: int
    """How many of them were feasible."""
    refused: tuple[tuple[str, int], ...]
    """(plugin, nodes that it refused), of those that refused any. One node may have been refused by several."""
    best: tuple[str, ...]
    """The node taken; then, where it was scored, the next best: of equal ones, any. One that is as good as the node
    taken comes later on the ring (`best_nodes`)."""
    shares: tuple[tuple[str, int], ...] = ()
    """(plugin, weight), of those that had something to say, in the profile's order."""
    scores: tuple[int, ...] = ()
    """Before their weights: of each node of `best` by each of `shares`, node by node."""

    @property
    def node(self) -> str:
        """The node taken."""
        return self.best[0]

    def weighted(self) -> dict[str, dict[str, int]]:
        """Node -> plugin -> weighted score, of `best`, in order; nothing where the node was not scored."""
        each = len(self.shares)
        return {
            node: {
                plugin: score * weight
                for (plugin, weight), score in zip(self.shares, self.scores[at * each : at * each + each], strict=True)
            }
            for at, node in enumerate(self.best if self.how == SCORED else ())
        }


def unscored(how: str, diagnosis: Diagnosis, node: str) -> Choice:
    """A node is taken that was not weighed against others."""
    return Choice(how, diagnosis.nodes, len(diagnosis.feasible), diagnosis.refused, (node,))


def leaders(totals: Scores, chosen: int, feasible: int) -> list[int]:
    """The place that is taken, and those of the next best of the `feasible` ones, to `SHOWN` in all."""
    found, before = [chosen], []
    for _ in range(min(SHOWN, feasible) - 1):
        before.append(totals.item(found[-1]))
        totals[found[-1]] = INFEASIBLE
        found.append(int(totals.argmax()))
    for place, total in zip(found, before, strict=False):
        totals[place] = total
    return found


@dataclass(frozen=True, slots=True, eq=False)
class PluginScores:
    """One plugin's normalised scores, 0..100, of the feasible rows."""

    plugin: str
    weight: int
    scores: Scores
    """`int64[rows]`"""


@dataclass(frozen=True, eq=False)
class NodeScores:
    """`rows` and, aligned with them, the scores."""

    rows: Rows
    """Ascending."""
    shares: tuple[PluginScores, ...]
    """Of the plugins that had something to say, in the profile's order."""
    name_hash: NDArray[np.uint64]
    """`uint64[nodes]`"""
    more: Scores | None = None
    """`int64[rows]`: what somebody else adds, weighted."""

    @cached_property
    def total(self) -> Scores:
        """`int64[rows]`"""
        total = np.zeros(len(self.rows), dtype=np.int64) if self.more is None else self.more.copy()
        for share in self.shares:
            total += share.scores * share.weight
        return total

    @property
    def per_plugin(self) -> dict[str, Scores]:
        """Weighted scores, `int64[rows]`, by plugin."""
        return {share.plugin: share.scores * share.weight for share in self.shares}

    def best(self, pod_uid: str) -> int:
        """The row that the pod takes: see `best_nodes`. ValueError when there is none."""
        if len(self.rows) == 0:
            raise ValueError("no node has scores, so none is best")
        return nearest(self.rows[self.total == self.total.max()], self.name_hash, pod_uid)

    def choose(self, row: int, diagnosis: Diagnosis, names: Sequence[str]) -> Choice:
        """The node in `row` and those that come next, of the feasible ones of `diagnosis`, whose scores these are."""
        rows = self.rows
        places = leaders(self.total, int(np.searchsorted(rows, row)), len(rows))
        shares = self.shares if self.more is None else (*self.shares, PluginScores(EXTENDERS, 1, self.more))
        return Choice(
            SCORED,
            diagnosis.nodes,
            len(rows),
            diagnosis.refused,
            tuple([names[rows.item(place)] for place in places]),
            tuple([(share.plugin, share.weight) for share in shares]),
            tuple([share.scores.item(place) for place in places for share in shares]),
        )
