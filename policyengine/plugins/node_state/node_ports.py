"""NodePorts: host ports that are taken on a node."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_shape import ANY_IP, HostPort
from policyengine.cluster.view import Snapshot
from policyengine.framework.events import ActionType, ClusterEventWithHint, Resource, on
from policyengine.framework.plugin import UNCONCERNED, Reads
from policyengine.framework.status import SKIP, SUCCESS, Code, Refusal, Rows, State, Status, Verdicts

_REFUSALS: Final = (Refusal(Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",)),)


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
        return Verdicts(np.array(taken, dtype=np.int16), _REFUSALS)

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
