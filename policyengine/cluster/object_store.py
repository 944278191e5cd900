"""Objects besides nodes and pods: claims, services, namespaces, budgets …, by kind and key.

An object may be assumed to be changed already: a volume that a placed pod takes, before the API server knows of it
(kube-scheduler's assume caches). Rules:
1. Readers see the assumed object in the observed one's place.
2. An assumption belongs to a pod, and an object is assumed by one pod at a time.
3. It ends when its pod gives it up, or when another version of the object is observed: the server is right.
4. Whatever a reader can see change bumps `generation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from policyengine.cluster.device_objects import ResourceClaim, ResourceSlice
from policyengine.cluster.device_slices import DeviceSlices
from policyengine.cluster.events import ActionType, ClusterEvent
from policyengine.cluster.objects import ObjectMeta, Wire
from policyengine.cluster.pending_claims import PendingClaims
from policyengine.cluster.update_events import object_event

T = TypeVar("T", bound=Wire)


class ClusterObject(Protocol):
    """Anything decoded."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its name, versions and labels."""


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
        self.generation = 0
        """Grows whenever a reader could see a change."""
        self.object_changes = 0
        """Grows whenever an object of any kind changes."""
        self.pending_claims = PendingClaims(self._claims_moved)
        """Claims allocated by a reservation and not seen allocated yet."""
        self.device_slices = DeviceSlices()
        """The ResourceSlices, by node and pool."""
        self._kinds: dict[str, dict[str, ClusterObject]] = {}
        self._versions: dict[str, int] = {}
        self._assumed: dict[tuple[str, str], tuple[str, ClusterObject]] = {}
        """(kind, key) -> (UID of the pod for which the object is assumed, the object as observed)."""

    def objects_of(self, kind: str) -> dict[str, ClusterObject]:
        """Key -> object of a kind, as observed or as assumed; the same dict for ever."""
        return self._kinds.setdefault(kind, {})

    def objects(self, kind: type[T]) -> Mapping[str, T]:
        """Key -> object of another kind: `namespace/name`, or the name where the kind has no namespace. What a placed
        pod is about to change is shown as it will be."""
        return cast(Mapping[str, T], self.objects_of(kind.__name__))

    def version(self, kind: str) -> int:
        """Grows whenever an object of the kind changes; keys what is cached about them."""
        return self._versions.get(kind, 0)

    def set_object(self, kind: str, item: ClusterObject, anew: bool = False) -> list[ClusterEvent]:
        """Take an object as observed; a stale or repeated one changes nothing, unless it comes `anew`."""
        self.generation += 1
        if isinstance(item, ResourceClaim):
            self.pending_claims.observe(item)
        objects, key = self.objects_of(kind), item.metadata.key
        old = objects.get(key)
        if old is not None and not anew and not is_newer(item.metadata, old.metadata):
            return []
        objects[key] = item
        if isinstance(item, ResourceSlice):
            self.device_slices.observe(item)
        self._assumed.pop((kind, key), None)
        self._touch(kind)
        if old is None:
            return object_event(kind, ActionType.ADD)
        if old.metadata.uid != item.metadata.uid:
            return object_event(kind, ActionType.DELETE) + object_event(kind, ActionType.ADD)
        return object_event(kind, ActionType.UPDATE_OTHER)

    def remove_object(self, kind: str, key: str) -> list[ClusterEvent]:
        """An object is gone; an unknown one is no change."""
        self.generation += 1
        gone = self.objects_of(kind).pop(key, None)
        if gone is None:
            return []
        if isinstance(gone, ResourceClaim):
            self.pending_claims.drop(gone.metadata.uid)
        elif isinstance(gone, ResourceSlice):
            self.device_slices.drop(key)
        self._assumed.pop((kind, key), None)
        self._touch(kind)
        return object_event(kind, ActionType.DELETE)

    def assume_object(self, owner: str, kind: str, item: ClusterObject) -> None:
        """Show `item`, made from an observed object, in its place until the pod `owner` gives that up, or another
        version is observed. Raises ValueError where the object is gone, has changed, or is assumed already.
        """
        key = item.metadata.key
        observed = self.objects_of(kind).get(key)
        if observed is None or observed.metadata.resource_version != item.metadata.resource_version:
            raise ValueError(f"cannot assume {kind} `{key}`: it is gone or has changed")
        if (kind, key) in self._assumed:
            raise ValueError(f"cannot assume {kind} `{key}`: another pod is about to change it")
        self._assumed[kind, key] = owner, observed
        self._show(kind, key, item)

    def revert_objects(self, owner: str) -> list[Reverted]:
        """Show what was assumed for the pod as it was observed again; what was observed anew since stays."""
        found: list[Reverted] = []
        for (kind, key), (pod, observed) in list(self._assumed.items()):
            if pod == owner:
                del self._assumed[kind, key]
                events = object_event(kind, ActionType.UPDATE_OTHER)
                found.append(Reverted(kind, self._kinds[kind][key], observed, events))
                self._show(kind, key, observed)
        return found

    def _show(self, kind: str, key: str, item: ClusterObject) -> None:
        self._kinds[kind][key] = item
        self.generation += 1
        self._touch(kind)

    def _claims_moved(self) -> None:
        self.generation += 1
        self._touch(ResourceClaim.__name__)

    def _touch(self, kind: str) -> None:
        self._versions[kind] = self.version(kind) + 1
        self.object_changes += 1


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

    Versions that are not both numbers say nothing, except that equal ones are equal. Numbers, of any length, begin with
    no zero (KEP-5504).
    """
    if not new or not old:
        return True
    if new == old:
        return False
    if new.isdecimal() and old.isdecimal():
        return (len(new), new) > (len(old), old)
    return True
