"""NodeUnschedulable: a cordoned node takes no pod, unless the pod tolerates what cordoning amounts to."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_shape import PodShape
from policyengine.cluster.view import Snapshot
from policyengine.framework.changes import at
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.selectors.tolerations import UNSCHEDULABLE_TAINT, tolerates

_REFUSALS: Final = (Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) were unschedulable",)),)


@lru_cache(maxsize=4096)
def _tolerates_cordon(shape: PodShape) -> bool:
    return tolerates(shape.spec.tolerations, UNSCHEDULABLE_TAINT)


class NodeUnschedulable:
    """Reads the pod's tolerations and `spec.unschedulable` of the nodes."""

    name = "NodeUnschedulable"
    reads = Reads.NODE

    def signature(self, pod: PodInfo) -> Hashable:
        """Whether the pod minds."""
        return UNCONCERNED if pod.shape.spec.tolerations and _tolerates_cordon(pod.shape) else None

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped for a pod that does not mind."""
        return (SKIP, None) if _tolerates_cordon(pod.shape) else (SUCCESS, None)

    def filter(self, state: State, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Cordoned nodes are refused."""
        return Verdicts(at(snapshot.nodes.unschedulable, rows).astype(np.int16), _REFUSALS)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Uncordoning, a new node, a toleration of its own."""
        return (
            on(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _uncordoned),
            on(Resource.POD, ActionType.UPDATE_POD_TOLERATION, _tolerated),
        )


def _uncordoned(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
    if new is None or new.spec.unschedulable:
        return False
    return old is None or old.spec.unschedulable


def _tolerated(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if new is None or new.uid != pod.uid:
        return False
    return _tolerates_cordon(new.shape)
