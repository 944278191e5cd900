"""NodeName: a pod whose spec names a node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts

_REFUSALS: Final = (Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match the requested node name",)),)


class NodeName:
    """Reads `spec.nodeName` of the pod, and the names of the nodes."""

    name = "NodeName"
    reads = Reads.NODE

    def signature(self, pod: PodInfo) -> Hashable:
        """The name asked for; empty for nearly every pod."""
        return pod.node_name or UNCONCERNED

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped where no node is named."""
        wanted = pod.node_name
        return (SUCCESS, wanted) if wanted else (SKIP, None)

    def filter(self, state: str, snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Every other node is refused."""
        return Verdicts((rows != snapshot.nodes.row_of.get(state, -1)).astype(np.int16), _REFUSALS)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A new node may bear the name."""
        return (on(Resource.NODE, ActionType.ADD),)
