"""The part of the cluster view that shows objects of other kinds than nodes and pods, as observed or as assumed.

Whatever a reader can see change bumps `generation`.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyengine.cluster.device_objects import ResourceClaim
from policyengine.cluster.events import ClusterEvent
from policyengine.cluster.object_store import ClusterObject, ObjectStore, Reverted
from policyengine.cluster.pending_claims import PendingClaims
from policyengine.cluster.workload_objects import Namespace, PodDisruptionBudget, Service


class OtherObjects:
    """Claims, services, namespaces, budgets …, by kind and key."""

    def __init__(self) -> None:
        self.generation = 0
        """Grows whenever a reader of the view could see a change."""
        self.pending_claims = PendingClaims(self._claims_moved)
        """Claims allocated by a reservation and not seen allocated yet."""
        self._store = ObjectStore()

    def set_object(self, kind: str, item: ClusterObject) -> list[ClusterEvent]:
        """Take an object of another kind as observed."""
        events = self._store.put(kind, item)
        self.generation += 1
        if isinstance(item, ResourceClaim):
            self.pending_claims.observe(item)
        return events

    def remove_object(self, kind: str, key: str) -> list[ClusterEvent]:
        """An object of another kind is gone; `key` is `namespace/name`, or the name of a cluster-scoped one."""
        self.generation += 1
        gone = self._store.of(kind).get(key)
        if isinstance(gone, ResourceClaim):
            self.pending_claims.drop(gone.metadata.uid)
        return self._store.drop(kind, key)

    def assume_object(self, owner: str, kind: str, item: ClusterObject) -> None:
        """Show `item`, made from an observed object, in its place until the pod `owner` gives that up, or another
        version is observed. Raises ValueError where the object is gone, has changed, or is assumed already.
        """
        self._store.assume(owner, kind, item)
        self.generation += 1

    def revert_objects(self, owner: str) -> list[Reverted]:
        """Show what was assumed for the pod as it was observed again."""
        reverted = self._store.revert(owner)
        self.generation += bool(reverted)
        return reverted

    @property
    def assumption_owners(self) -> set[str]:
        """UIDs of the pods for which objects are assumed."""
        return self._store.owners

    def objects(self, kind: str) -> Mapping[str, ClusterObject]:
        """Key -> object of another kind, as observed or as assumed."""
        return self._store.of(kind)

    def version(self, kind: str) -> int:
        """Grows whenever an object of the kind changes."""
        return self._store.version(kind)

    @property
    def object_changes(self) -> int:
        """Grows whenever an object of any kind changes."""
        return self._store.changes

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        """Name -> namespace."""
        return self._store.namespaces

    @property
    def services(self) -> Mapping[str, Service]:
        """`namespace/name` -> service."""
        return self._store.services

    @property
    def pdbs(self) -> Mapping[str, PodDisruptionBudget]:
        """`namespace/name` -> disruption budget."""
        return self._store.pdbs

    def dump_objects(self) -> dict[str, dict[str, ClusterObject]]:
        """kind -> key -> object."""
        return self._store.dump()

    def _claims_moved(self) -> None:
        self.generation += 1
        self._store.touch("ResourceClaim")
