"""Field ownership and server-side apply: `metadata.managedFields`, merging a configuration, and conflicts.

Rules (https://kubernetes.io/docs/reference/using-api/server-side-apply/): an update makes its manager own what it
changed and takes it from all others; an apply makes its manager own exactly what its configuration says, and removes
what it said before and nobody else owns. A conflict is a field that another manager owns and the configuration would
change; `force` takes it over. A manager is a name, an operation, an apiVersion and a subresource; one that owns
nothing is dropped.
"""

from dataclasses import dataclass, field

from policyengine.simulator.api_server.kinds.api_types import Field
from policyengine.simulator.api_server.statuses import ApiError, Json
from policyengine.simulator.api_server.storage import Object, metadata
from policyengine.simulator.api_server.writing.field_paths import (
    Path,
    children,
    compare,
    from_fields_v1,
    held,
    text,
    to_fields_v1,
)

UPDATE, APPLY = "Update", "Apply"
OWNED_METADATA = ("generateName", "labels", "annotations", "ownerReferences", "finalizers")
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
    kept = paths - IMPLIED
    if subresource == "status":
        return {path for path in kept if path[0] in ("f:status", "f:metadata")}
    return {path for path in kept if path[0] != "f:status"} if has_status else kept


def owned_object(obj: Object) -> Object:
    """The object without the metadata no manager owns."""
    return {**obj, "metadata": {k: v for k, v in metadata(obj).items() if k in OWNED_METADATA}}


def record_update(old: Object, new: Object, shape: Field, manager: Manager, has_status: bool, now: str) -> None:
    """Write into `new` who owns what after an update from `old` (the zero object for a create)."""
    changed, removed = compare(owned_object(old), owned_object(new), shape)
    ownership = read(new)
    ownership.take(manager, owned_part(changed, manager.subresource, has_status), removed, now)
    entries = ownership.write()
    if entries:
        metadata(new)["managedFields"] = entries
    else:
        metadata(new).pop("managedFields", None)


def manager_of(user_agent: str, given: str) -> str:
    """The manager's name: the `fieldManager` asked for, or the client's name up to the first slash."""
    return given or user_agent.partition("/")[0][:128] or "unknown"


def merge(live: Json, config: Json, shape: Field) -> Json:
    """`live` with every part of `config` laid over it; keyed lists and sets merge item by item."""
    parts = children(config, shape)
    if parts is None or live is None:
        return config
    if isinstance(config, dict):
        out = dict(live) if isinstance(live, dict) else {}
        for step, part, inner in parts:
            name = step[2:]
            out[name] = merge(out[name], part, inner) if name in out else part
        return out
    return _merge_list(live, parts, shape)


def _merge_list(live: Json, parts: list[tuple[str, Json, Field]], shape: Field) -> Json:
    """Items keep the live order; the configuration's new ones follow."""
    wanted = {step: (part, inner) for step, part, inner in parts}
    out: list[Json] = []
    for step, part, _ in children(live, shape) or ():
        if step in wanted:
            config, inner = wanted.pop(step)
            out.append(merge(part, config, inner))
        else:
            out.append(part)
    return out + [part for part, _ in wanted.values()]


def remove(value: Json, shape: Field, gone: set[Path]) -> Json:
    """`value` without the paths in `gone`; a container left empty by that goes too."""
    parts = children(value, shape)
    if parts is None or not gone:
        return value
    below: dict[str, set[Path]] = {path[0]: set() for path in gone}
    for path in gone:
        if len(path) > 1:
            below[path[0]].add(path[1:])
    kept: list[tuple[str, Json]] = []
    for step, part, inner in parts:
        if step in below:
            rest = remove(part, inner, below[step])
            if not below[step] or rest in ({}, []):
                continue
            part = rest
        kept.append((step, part))
    if isinstance(value, dict):
        return {step[2:]: part for step, part in kept}
    return [part for _, part in kept]


def conflict_error(found: dict[Manager, list[Path]]) -> ApiError:
    """409, naming every conflict by manager."""
    ordered = sorted(found.items(), key=lambda item: item[0].said())
    rows = [(manager.said(), text(path)) for manager, paths in ordered for path in paths]
    causes: list[Json] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {said}", "field": path} for said, path in rows
    ]
    if len(rows) == 1:
        message = f"Apply failed with 1 conflict: conflict with {rows[0][0]}: {rows[0][1]}"
    else:
        parts = []
        for manager, paths in ordered:
            parts.append(f"conflicts with {manager.said()}:\n" + "\n".join(f"- {text(path)}" for path in paths))
        message = f"Apply failed with {len(rows)} conflicts: " + "\n".join(parts)
    return ApiError(409, "Conflict", message, {"causes": causes})


def apply(
    live: Object, config: Object, shape: Field, manager: Manager, force: bool, has_status: bool, now: str
) -> Object:
    """The object after the apply, its managedFields written; raises a 409."""
    ownership = read(live)
    live_owned, config_owned = owned_object(live), owned_object(config)
    names = owned_part(set(held(config_owned, shape)), manager.subresource, has_status)
    merged = merge(live_owned, config_owned, shape)
    changed, _ = compare(live_owned, merged, shape)
    others = {other: owned for other, owned in ownership.paths.items() if other != manager}
    found = {other: sorted(owned & changed) for other, owned in others.items() if owned & changed}
    if found and not force:
        raise conflict_error(found)
    for owned in others.values():
        owned -= changed
    before = ownership.paths.get(manager, set())
    kept_paths = names.union(*others.values())
    leading = {path[:length] for path in kept_paths for length in range(1, len(path) + 1)}
    pruned = remove(merged, shape, before - leading)
    assert isinstance(pruned, dict)
    kept = {k: v for k, v in metadata(live).items() if k not in OWNED_METADATA}
    result: Object = {**pruned, "metadata": {**metadata(pruned), **kept}}
    if before != names or manager not in ownership.times or pruned != live_owned:
        ownership.times[manager] = now
    ownership.paths[manager] = names
    ownership.prune()
    metadata(result)["managedFields"] = ownership.write()
    return result
