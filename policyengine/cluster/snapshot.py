"""The cluster view at one generation, to read from.

No copy: the core is single-threaded, and a decision is over before the next message. A snapshot kept beyond that
is a bug, which `check` finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from policyengine.cluster.journal import Journal
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo

if TYPE_CHECKING:
    from policyengine.cluster.pending_claims import PendingClaims
    from policyengine.cluster.scheduling_status import QueueStatus
    from policyengine.cluster.usage_counts import Grouping, UsageCounts
    from policyengine.cluster.view import ClusterView
    from policyengine.cluster.workload_objects import Namespace, PodDisruptionBudget, Service


class Snapshot:
    """A read-only face of the view."""

    __slots__ = ("_view", "generation", "nodes", "pods")

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.generation: int = view.generation
        self.nodes: NodeTable = view.nodes
        self.pods: Mapping[str, PodInfo] = view.pods
        """UID -> pod: pending, assumed and bound."""

    def check(self) -> None:
        """Raise AssertionError where the view has moved on since."""
        now = self._view.generation
        if now != self.generation:
            raise AssertionError(f"snapshot of generation {self.generation} read at generation {now}")

    @property
    def now(self) -> int:
        """When the decision began, in whole seconds since the epoch."""
        return int(self._view.now)

    def with_table(self, nodes: NodeTable) -> Snapshot:
        """The same, with another table of the same nodes (`NodeTable.with_own_sums`)."""
        other = Snapshot(self._view)
        other.nodes = nodes
        return other

    @property
    def node_journal(self) -> Journal:
        """Rows whose Node object changed."""
        return self.nodes.node_journal

    @property
    def pod_journal(self) -> Journal:
        """Rows where the pods on the node changed."""
        return self.nodes.pod_journal

    @property
    def pod_count(self) -> int:
        """Pods known and not finished."""
        return len(self.pods)

    @property
    def pending_count(self) -> int:
        """Pods neither assumed nor bound."""
        return self._view.pending_count

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        """Name -> namespace."""
        return self._view.namespaces

    @property
    def services(self) -> Mapping[str, Service]:
        """`namespace/name` -> service."""
        return self._view.services

    @property
    def pdbs(self) -> Mapping[str, PodDisruptionBudget]:
        """`namespace/name` -> disruption budget."""
        return self._view.pdbs

    def objects(self, kind: str) -> Mapping[str, object]:
        """Key -> object of another kind: `namespace/name`, or the name where the kind has no namespace. What a placed
        pod is about to change is shown as it will be."""
        return self._view.objects(kind)

    def version(self, kind: str) -> int:
        """Grows whenever an object of the kind changes; keys what is cached about them."""
        return self._view.version(kind)

    @property
    def object_changes(self) -> int:
        """Grows whenever an object of any kind changes: while it stays, so does every `version`."""
        return self._view.object_changes

    @property
    def pending_claims(self) -> PendingClaims:
        """Claims allocated by a reservation and not seen allocated yet; what Reserve adds to."""
        return self._view.pending_claims

    def usage_counts(self, grouping: Grouping) -> UsageCounts:
        """What the pods with a node ask for, by the groups that `grouping` puts them in; kept from then on."""
        return self._view.usage_counts(grouping)

    @property
    def queue_status(self) -> QueueStatus:
        """The pods' place in the queues."""
        return self._view.queue_status

    def nominated_on(self, node_name: str) -> Mapping[str, PodInfo]:
        """UID -> pending pod nominated to the node."""
        return self._view.nominated_on(node_name)

    @property
    def nominated(self) -> Mapping[str, Mapping[str, PodInfo]]:
        """Node name -> UID -> pending pod; only nodes with nominations."""
        return self._view.nominated
