"""Objects besides nodes and pods: claims, services, namespaces, budgets …, by kind and key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from policyengine.cluster.changes import object_event
from policyengine.cluster.events import ActionType, ClusterEvent
from policyengine.cluster.metadata import ObjectMeta
from policyengine.cluster.workload_objects import Namespace, PodDisruptionBudget, Service


class ClusterObject(Protocol):
    """Anything decoded."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its name, versions and labels."""


class ObjectStore:
    """kind -> key -> object, with a version a kind that grows at every change."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, ClusterObject]] = {}
        self._versions: dict[str, int] = {}

    def of(self, kind: str) -> dict[str, ClusterObject]:
        """The objects of a kind; the same dict for ever."""
        return self._kinds.setdefault(kind, {})

    def version(self, kind: str) -> int:
        """Grows whenever an object of the kind changes."""
        return self._versions.get(kind, 0)

    def put(self, kind: str, item: ClusterObject) -> list[ClusterEvent]:
        """Add or replace; a stale or repeated one changes nothing."""
        objects = self.of(kind)
        key = item.metadata.key
        old = objects.get(key)
        if old is not None and not is_newer(item.metadata, old.metadata):
            return []
        objects[key] = item
        self._versions[kind] = self.version(kind) + 1
        if old is None:
            return object_event(kind, ActionType.ADD)
        if old.metadata.uid != item.metadata.uid:
            return object_event(kind, ActionType.DELETE) + object_event(kind, ActionType.ADD)
        return object_event(kind, ActionType.UPDATE_OTHER)

    def drop(self, kind: str, key: str) -> list[ClusterEvent]:
        """Remove; an unknown one is no change."""
        if self.of(kind).pop(key, None) is None:
            return []
        self._versions[kind] = self.version(kind) + 1
        return object_event(kind, ActionType.DELETE)

    def dump(self) -> dict[str, dict[str, ClusterObject]]:
        """Everything, kinds without objects left out."""
        return {kind: dict(objects) for kind, objects in self._kinds.items() if objects}

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        """Name -> namespace."""
        return cast(Mapping[str, Namespace], self.of("Namespace"))

    @property
    def services(self) -> Mapping[str, Service]:
        """`namespace/name` -> service."""
        return cast(Mapping[str, Service], self.of("Service"))

    @property
    def pdbs(self) -> Mapping[str, PodDisruptionBudget]:
        """`namespace/name` -> disruption budget."""
        return cast(Mapping[str, PodDisruptionBudget], self.of("PodDisruptionBudget"))


def is_newer(new: ObjectMeta, old: ObjectMeta) -> bool:
    """Whether `new` replaces `old`, the object known under its name.

    Not when it has the same version or an older one: then it is repeated, late, or a late word of an object long
    replaced; but an object created later under another UID always does.
    """
    if version_is_newer(new.resource_version, old.resource_version):
        return True
    return new.uid != old.uid and (new.creation_timestamp or "") > (old.creation_timestamp or "")


def version_is_newer(new: str, old: str) -> bool:
    """Whether version `new` replaces `old`. A missing version is always taken.

    Versions that are not both numbers say nothing, except that equal ones are equal (KEP-5504).
    """
    if not new or not old:
        return True
    if new == old:
        return False
    if new.isdecimal() and old.isdecimal():
        return int(new) > int(old)
    return True
