"""Objects besides nodes and pods: claims, services, namespaces, budgets …, by kind and key.

An object may be assumed to be changed already: a volume that a placed pod takes, before the API server knows of it
(kube-scheduler's assume caches). Rules:
1. Readers see the assumed object in the observed one's place.
2. An assumption belongs to a pod, and an object is assumed by one pod at a time.
3. It ends when its pod gives it up, or when another version of the object is observed: the server is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from policyengine.cluster.changes import object_event
from policyengine.cluster.events import ActionType, ClusterEvent
from policyengine.cluster.objects import ObjectMeta
from policyengine.cluster.workload_objects import Namespace, PodDisruptionBudget, Service


class ClusterObject(Protocol):
    """Anything decoded."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its name, versions and labels."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """An object shown otherwise than it was observed."""

    owner: str
    """UID of the pod for which it was assumed."""
    observed: ClusterObject


@dataclass(frozen=True, slots=True)
class Reverted:
    """An assumption that was given up."""

    kind: str
    assumed: ClusterObject
    observed: ClusterObject
    events: list[ClusterEvent]


class ObjectStore:
    """kind -> key -> object, with a version a kind that grows at every change."""

    def __init__(self) -> None:
        self._assumed: dict[tuple[str, str], Assumed] = {}
        self._kinds: dict[str, dict[str, ClusterObject]] = {}
        self._versions: dict[str, int] = {}
        self.changes = 0
        """Grows whenever an object of any kind changes."""

    def of(self, kind: str) -> dict[str, ClusterObject]:
        """The objects of a kind; the same dict for ever."""
        return self._kinds.setdefault(kind, {})

    def version(self, kind: str) -> int:
        """Grows whenever an object of the kind changes."""
        return self._versions.get(kind, 0)

    def touch(self, kind: str) -> None:
        """Something that is read together with the kind's objects has changed."""
        self._versions[kind] = self.version(kind) + 1
        self.changes += 1

    def put(self, kind: str, item: ClusterObject) -> list[ClusterEvent]:
        """Add or replace; a stale or repeated one changes nothing."""
        objects = self.of(kind)
        key = item.metadata.key
        old = objects.get(key)
        if old is not None and not is_newer(item.metadata, old.metadata):
            return []
        objects[key] = item
        self._assumed.pop((kind, key), None)
        self.touch(kind)
        if old is None:
            return object_event(kind, ActionType.ADD)
        if old.metadata.uid != item.metadata.uid:
            return object_event(kind, ActionType.DELETE) + object_event(kind, ActionType.ADD)
        return object_event(kind, ActionType.UPDATE_OTHER)

    def drop(self, kind: str, key: str) -> list[ClusterEvent]:
        """Remove; an unknown one is no change."""
        if self.of(kind).pop(key, None) is None:
            return []
        self._assumed.pop((kind, key), None)
        self.touch(kind)
        return object_event(kind, ActionType.DELETE)

    def assume(self, owner: str, kind: str, item: ClusterObject) -> None:
        """Show `item` in the place of the observed object of its name, from which it was made.

        Raises ValueError where that is gone, has another version by now, or is assumed already.
        """
        key = item.metadata.key
        observed = self.of(kind).get(key)
        if observed is None or observed.metadata.resource_version != item.metadata.resource_version:
            raise ValueError(f"cannot assume {kind} `{key}`: it is gone or has changed")
        if (kind, key) in self._assumed:
            raise ValueError(f"cannot assume {kind} `{key}`: another pod is about to change it")
        self._assumed[kind, key] = Assumed(owner, observed)
        self._kinds[kind][key] = item
        self.touch(kind)

    def revert(self, owner: str) -> list[Reverted]:
        """Show the pod's objects as they were observed again; those observed anew since are not touched."""
        found: list[Reverted] = []
        for (kind, key), assumed in list(self._assumed.items()):
            if assumed.owner == owner:
                del self._assumed[kind, key]
                before = self._kinds[kind][key]
                self._kinds[kind][key] = assumed.observed
                self.touch(kind)
                events = object_event(kind, ActionType.UPDATE_OTHER)
                found.append(Reverted(kind, before, assumed.observed, events))
        return found

    def owner(self, kind: str, key: str) -> str:
        """UID of the pod for which the object is assumed; empty when it is shown as observed."""
        assumed = self._assumed.get((kind, key))
        return "" if assumed is None else assumed.owner

    @property
    def owners(self) -> set[str]:
        """UIDs of the pods with assumptions."""
        return {assumed.owner for assumed in self._assumed.values()}

    def dump(self) -> dict[str, dict[str, ClusterObject]]:
        """Everything as observed, kinds without objects left out."""
        found = {kind: dict(objects) for kind, objects in self._kinds.items() if objects}
        for (kind, key), assumed in self._assumed.items():
            found[kind][key] = assumed.observed
        return found

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
