"""Other schedulers that bind pods to the nodes that are scheduled onto here: each may overfill them for the others."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import ClusterView

MOST = 100
"""Scheduler names that are remembered: pods may name any."""


@dataclass(slots=True)
class Neighbour:
    """Somebody who binds pods of one scheduler name."""

    node: str
    """Where that was seen first."""
    bindings: int = 0


class Neighbours(dict[str, Neighbour]):
    """Who else binds pods here, by the pods' scheduler name."""

    def note(self, view: ClusterView, served: Container[str], pod: PodInfo) -> None:
        """A pod that waited was bound by somebody else. It counts where it, or another pod on the node, has a scheduler
        name that is `served` here; but not a DaemonSet's, whose node was never in question."""
        row, name = view.nodes.row_of.get(pod.node_name), pod.scheduler_name
        if row is None or (pod.owner is not None and pod.owner.kind == "DaemonSet"):
            return
        if not any(one.scheduler_name in served for one in view.nodes.pods_on(row).values()):
            return
        if name in self or len(self) < MOST:
            self.setdefault(name, Neighbour(pod.node_name)).bindings += 1
