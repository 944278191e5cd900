"""Who owns which fields: `metadata.managedFields` kept up over updates and server-side applies.

Rules (https://kubernetes.io/docs/reference/using-api/server-side-apply/): an update makes its manager own what it
changed and takes it from all others; an apply makes its manager own exactly what its configuration says. A manager
is a name, an operation, an apiVersion and a subresource; one that owns nothing is dropped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policyengine.simulator.api_server.patching.paths import (
    UNOWNED,
    Path,
    Shape,
    compare,
    from_fields_v1,
    to_fields_v1,
)
from policyengine.simulator.api_server.statuses import Json
from policyengine.simulator.api_server.storage.store import Object, metadata

UPDATE, APPLY = "Update", "Apply"
IMPLIED = frozenset({("f:metadata",), ("f:status",), ("f:apiVersion",), ("f:kind",)})


@dataclass(frozen=True, slots=True)
class Manager:
    """Who manages fields, and how."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def said(self) -> str:
        """The manager as a conflict names it."""
        out = f'"{self.name}"'
        if self.subresource:
            out += f' with subresource "{self.subresource}"'
        return out + (f" using {self.api_version}" if self.operation == UPDATE else "")


@dataclass(slots=True)
class Ownership:
    """The managers of one object, each with its paths and the time of its last change."""

    paths: dict[Manager, set[Path]] = field(default_factory=dict)
    times: dict[Manager, str] = field(default_factory=dict)

    def take(self, manager: Manager, changed: set[Path], removed: set[Path], now: str) -> None:
        """An update: `manager` owns what it changed, nobody what it removed."""
        for other, owned in self.paths.items():
            if other != manager:
                owned -= changed
            owned -= removed
        if changed:
            self.paths.setdefault(manager, set()).update(changed)
        if changed or removed:
            self.times[manager] = now
        self.prune()

    def prune(self) -> None:
        """Drop managers that own nothing."""
        for manager in [m for m, owned in self.paths.items() if not owned]:
            del self.paths[manager]

    def write(self) -> list[Json]:
        """The value of `metadata.managedFields`."""
        ordered = sorted(self.paths, key=lambda m: (m.operation != APPLY, self.times.get(m, ""), m.name, m.api_version))
        return [self._entry(manager) for manager in ordered]

    def _entry(self, manager: Manager) -> Json:
        entry: dict[str, Json] = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            "time": self.times.get(manager, ""),
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(self.paths[manager]),
        }
        if manager.subresource:
            entry["subresource"] = manager.subresource
        return entry


def read(obj: Object) -> Ownership:
    """The ownership an object carries."""
    found = Ownership()
    entries = metadata(obj).get("managedFields")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            manager = Manager(
                str(entry.get("manager", "")),
                str(entry.get("operation", "")),
                str(entry.get("apiVersion", "")),
                str(entry.get("subresource") or ""),
            )
            found.paths[manager] = set(from_fields_v1(entry.get("fieldsV1")))
            found.times[manager] = str(entry.get("time", ""))
    return found


def owned_part(paths: set[Path], subresource: str, has_status: bool) -> set[Path]:
    """What of `paths` a write through `subresource` can own: status only through `status`, the rest elsewhere."""
    kept = {path for path in paths if path not in IMPLIED and path[:2] not in UNOWNED}
    if subresource == "status":
        return {path for path in kept if path[0] in ("f:status", "f:metadata")}
    return {path for path in kept if path[0] != "f:status"} if has_status else kept


def record_update(
    old: Mapping[str, Json], new: Object, shape: Shape, manager: Manager, has_status: bool, now: str
) -> None:
    """Write into `new` who owns what after an update from `old` (the zero object for a create)."""
    before = {**old, "metadata": _owned_metadata(old)}
    after = {**new, "metadata": _owned_metadata(new)}
    difference = compare(before, after, shape)
    ownership = read(new)
    ownership.take(
        manager,
        owned_part(difference.changed, manager.subresource, has_status),
        difference.removed,
        now,
    )
    entries = ownership.write()
    if entries:
        metadata(new)["managedFields"] = entries
    else:
        metadata(new).pop("managedFields", None)


OWNED_METADATA = ("generateName", "labels", "annotations", "ownerReferences", "finalizers")


def _owned_metadata(obj: Mapping[str, Json]) -> dict[str, Json]:
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        return {}
    return {name: meta[name] for name in OWNED_METADATA if name in meta}


def manager_of(user_agent: str, given: str) -> str:
    """The manager's name: the `fieldManager` asked for, or the client's name up to the first slash."""
    return given or user_agent.partition("/")[0][:128] or "unknown"
