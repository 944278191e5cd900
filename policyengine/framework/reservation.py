"""The extension points between the choice of a node and its binding: Reserve, Unreserve and Permit.

They see one pod and one node; the node's room is taken already (`ClusterView.assume`) when they are asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from policyengine.framework.plugin import Plugin
from policyengine.framework.status import Status

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot

MAX_PERMIT_WAIT = 15 * 60.0
"""Seconds; longer waits are cut to this (kube-scheduler's maxTimeout, framework/runtime/framework.go)."""


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Takes what a placed pod needs beside the node's room, and gives it back."""

    def reserve(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> Status:
        """SUCCESS, or why the pod cannot have it: the placement is then undone."""

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        """Give back what `reserve` took. Does nothing where it took nothing; must not fail."""


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Lets a reserved pod be bound, refuses it, or has it wait."""

    def permit(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> tuple[Status, float]:
        """SUCCESS, a refusal, or WAIT with the seconds after which waiting turns into a refusal.

        A pod that waits is asked again when an event happens for which the plugin registered.
        """
