"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes only where the node declares it (KEP-5328).

What a pod needs follows from its spec (component-helpers' nodedeclaredfeatures, v1.36). Features that matter only
to updates of a pod (in-place resize of init containers and of pod-level resources, web sockets) are not asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_shape import PodShape
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
_MISSING: Final = Refusal(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's required features",))


@lru_cache(maxsize=4096)
def required_features(shape: PodShape) -> frozenset[str]:
    """The features that a node has to declare for pods of this shape."""
    spec = shape.spec
    needed: list[str] = []
    containers = (*spec.containers, *spec.init_containers)
    if any(rule.action == "RestartAllContainers" for one in containers for rule in one.restart_policy_rules):
        needed.append(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.append(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)


class NodeDeclaredFeatures:
    """Reads the features that nodes declare in their status."""

    name = "NodeDeclaredFeatures"
    reads = Reads.NODE

    def signature(self, pod: PodInfo) -> Hashable:
        """The features needed."""
        return required_features(pod.shape) or UNCONCERNED

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped for pods that need none."""
        required = required_features(pod.shape)
        return (SUCCESS, required) if required else (SKIP, None)

    def filter(self, state: frozenset[str], snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Nodes that do not declare all of them are refused."""
        objects = snapshot.nodes.objects
        lacks = (not state.issubset(objects[row].status.declared_features) for row in rows.tolist())
        return Verdicts(np.fromiter(lacks, dtype=np.int16, count=len(rows)), (_MISSING,))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Nodes that come or declare other features; the pod's own change."""
        return (
            on(
                Resource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE,
                changed=lambda old, new: old.status.declared_features != new.status.declared_features,
            ),
            on(Resource.POD, ActionType.UPDATE, _pod_changed),
        )


def _pod_changed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is None or new is None or new.uid != pod.uid:
        return False
    return required_features(old.shape) != required_features(new.shape)
