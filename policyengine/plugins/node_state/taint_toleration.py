"""TaintToleration: hard taints keep pods away that do not tolerate them, soft ones make nodes less welcome.

Score: the number of untolerated PreferNoSchedule taints, reversed: 100 - 100·n/max; 100 for all where max is 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_objects import Node, Taint
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Toleration
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, is_own_update, on
from policyengine.framework.plugin import Reads, Scores, default_normalize
from policyengine.framework.status import SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.selectors.tolerations import HARD, PREFER_NO_SCHEDULE, TaintCounts, untolerated

_REFUSALS: Final = (Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had untolerated taint(s)",)),)
_SOFT: Final = frozenset({PREFER_NO_SCHEDULE})


class TaintToleration:
    """Reads the pod's tolerations and the nodes' taints; each distinct set of taints is evaluated once."""

    name = "TaintToleration"
    reads = Reads.NODE

    def signature(self, pod: PodInfo) -> Hashable:
        """The tolerations."""
        return pod.shape.spec.tolerations

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Never skipped."""
        return SUCCESS, TaintCounts(pod.shape.spec.tolerations, HARD)

    def filter(self, state: TaintCounts, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Nodes with a hard taint that is not tolerated are refused."""
        return Verdicts((state.at(snapshot.nodes, rows) != 0).astype(np.int16), _REFUSALS)

    def pre_score(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Never skipped. Only tolerations of any effect, or of PreferNoSchedule, can match."""
        return SUCCESS, TaintCounts(pod.shape.spec.tolerations, _SOFT)

    def score(self, state: TaintCounts, snapshot: Snapshot, rows: Rows) -> NDArray[np.generic]:
        """The number of soft taints not tolerated."""
        return state.at(snapshot.nodes, rows)

    def normalize(self, state: State, scores: NDArray[np.generic]) -> Scores:
        """Fewer is better; 100 for all where none has any."""
        return default_normalize(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A taint that went, a new node, a toleration of its own."""
        return (
            on(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _became_tolerable),
            on(Resource.POD, ActionType.UPDATE_POD_TOLERATION, is_own_update),
        )


def _keeps_off(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> bool:
    return bool(untolerated(tolerations, taints, HARD))


def _became_tolerable(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
    tolerations = pod.shape.spec.tolerations
    kept_off = old is None or _keeps_off(tolerations, old.spec.taints)
    keeps_off = new is None or _keeps_off(tolerations, new.spec.taints)
    return kept_off and not keeps_off
