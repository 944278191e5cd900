"""Filters that hold a pod's spec against what one node says of itself: its name, cordon, ports in use, features.

NodeDeclaredFeatures (KEP-5328): what a pod needs of the kubelet follows from its spec (component-helpers'
nodedeclaredfeatures, v1.36). Features that matter only to updates of a pod (in-place resize of init containers and of
pod-level resources, web sockets) are not asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_shape import ANY_IP, HostPort, PodShape
from policyengine.cluster.view import Snapshot
from policyengine.framework.changes import at
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts
from policyengine.plugins.selectors.tolerations import UNSCHEDULABLE_TAINT, tolerates

_UNRESOLVABLE: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
_NAMES_ANOTHER: Final = (Refusal(_UNRESOLVABLE, ("node(s) didn't match the requested node name",)),)


class NodeName:
    """A pod whose spec names a node goes there or nowhere. Reads `spec.nodeName` and the names of the nodes."""

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
        return Verdicts((rows != snapshot.nodes.row_of.get(state, -1)).astype(np.int16), _NAMES_ANOTHER)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A new node may bear the name."""
        return (on(Resource.NODE, ActionType.ADD),)


_CORDONED: Final = (Refusal(_UNRESOLVABLE, ("node(s) were unschedulable",)),)


@lru_cache(maxsize=4096)
def _tolerates_cordon(shape: PodShape) -> bool:
    return tolerates(shape.spec.tolerations, UNSCHEDULABLE_TAINT)


class NodeUnschedulable:
    """A cordoned node takes no pod, unless the pod tolerates what cordoning amounts to. Reads the pod's tolerations and
    `spec.unschedulable` of the nodes."""

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
        return Verdicts(at(snapshot.nodes.unschedulable, rows).astype(np.int16), _CORDONED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Uncordoning, a new node, a toleration of its own."""
        return (
            on(Resource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _uncordoned),
            on(Resource.POD, ActionType.UPDATE_POD_TOLERATION, _tolerated),
        )


def _uncordoned(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
    return new is not None and not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def _tolerated(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    return new is not None and new.uid == pod.uid and _tolerates_cordon(new.shape)


_TAKEN: Final = (Refusal(Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",)),)


class NodePorts:
    """Reads the pod's host ports, and those of the pods on each node; 0.0.0.0 collides with every address."""

    name = "NodePorts"
    reads = Reads.PODS
    eased_by_evictions = True

    def signature(self, pod: PodInfo) -> Hashable:
        """The host ports."""
        return pod.shape.host_ports or UNCONCERNED

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> tuple[Status, State]:
        """Skipped for a pod without host ports."""
        ports = pod.shape.host_ports
        return (SUCCESS, ports) if ports else (SKIP, None)

    def filter(self, state: tuple[HostPort, ...], snapshot: Snapshot, rows: Rows) -> Verdicts:
        """Nodes where one of the ports is taken are refused."""
        placed = (snapshot.nodes.pods_on(row).values() for row in rows.tolist())
        taken = [any(one.shape.host_ports and collide(state, one.shape.host_ports) for one in pods) for pods in placed]
        return Verdicts(np.array(taken, dtype=np.int16), _TAKEN)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """A pod with such a port gone, or a new node."""
        return (
            on(Resource.POD, ActionType.DELETE, _port_freed),
            on(Resource.NODE, ActionType.ADD),
        )


def _port_freed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is None or not (old.node_name or old.nominated_node_name):
        return False
    return collide(pod.shape.host_ports, old.shape.host_ports)


def collide(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    """Whether two of the ports cannot be had on one node; 0.0.0.0 collides with every address."""
    return any(
        (protocol, port) == (other_protocol, other_port) and (ip == other_ip or ANY_IP in (ip, other_ip))
        for ip, protocol, port in wanted
        for other_ip, other_protocol, other_port in taken
    )


RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
_MISSING: Final = (Refusal(_UNRESOLVABLE, ("node(s) didn't match Pod's required features",)),)


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
    """A pod that needs a feature of the kubelet goes only where the node declares it in its status."""

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
        return Verdicts(np.fromiter(lacks, dtype=np.int16, count=len(rows)), _MISSING)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Nodes that come or declare other features; the pod's own change."""
        return (
            on(
                Resource.NODE,
                ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE,
                changed=lambda old, new: old.status.declared_features != new.status.declared_features,
            ),
            on(Resource.POD, ActionType.UPDATE, _features_changed),
        )


def _features_changed(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
    if old is None or new is None or new.uid != pod.uid:
        return False
    return required_features(old.shape) != required_features(new.shape)
