"""Server-side apply: merge a configuration into the live object, prune what its manager gave up, refuse conflicts.

A conflict is a field that another manager owns and the configuration would change; `force` takes it over
(https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts).
"""

from policyengine.simulator.api_server.patching.managed_fields import APPLY, Manager, Ownership, owned_part, read
from policyengine.simulator.api_server.patching.paths import Path, Shape, children, compare, held, text
from policyengine.simulator.api_server.statuses import ApiError, Json
from policyengine.simulator.api_server.storage.store import Object, metadata

KEPT_METADATA = (
    *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "generateName"),
)


def merge(live: Json, config: Json, shape: Shape) -> Json:
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


def _merge_list(live: Json, parts: list[tuple[str, Json, Shape]], shape: Shape) -> Json:
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


def remove(value: Json, shape: Shape, gone: set[Path]) -> Json:
    """`value` without the paths in `gone`; a container left empty by that goes too."""
    parts = children(value, shape)
    if parts is None or not gone:
        return value
    dropped = {path[0] for path in gone if len(path) == 1}
    kept: list[tuple[str, Json]] = []
    for step, part, inner in parts:
        below = {path[1:] for path in gone if len(path) > 1 and path[0] == step}
        if step in dropped and not below:
            continue
        rest = remove(part, inner, below)
        if below and rest in ({}, []):
            continue
        kept.append((step, rest))
    if isinstance(value, dict):
        return {step[2:]: part for step, part in kept}
    return [part for _, part in kept]


def conflicts(
    live: Object, merged: Object, shape: Shape, manager: Manager, ownership: Ownership
) -> dict[Manager, list[Path]]:
    """By other manager, the paths it owns that the merge would change."""
    changed = compare(live, merged, shape).changed
    found: dict[Manager, list[Path]] = {}
    for other, owned in ownership.paths.items():
        if other != manager:
            both = sorted(owned & changed)
            if both:
                found[other] = both
    return found


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
    live: Object, config: Object, shape: Shape, manager: Manager, force: bool, has_status: bool, now: str
) -> Object:
    """The object after the apply, its managedFields written; raises a 409."""
    ownership = read(live)
    live_owned, config_owned = owned_object(live), owned_object(config)
    names = owned_part(set(held(config_owned, shape)), manager.subresource, has_status)
    merged = merge(live_owned, config_owned, shape)
    assert isinstance(merged, dict)
    found = conflicts(live_owned, merged, shape, manager, ownership)
    if found and not force:
        raise conflict_error(found)
    for other, paths in found.items():
        ownership.paths[other] -= set(paths)
    before = ownership.paths.get(manager, set())
    elsewhere = {p for m, owned in ownership.paths.items() if m != manager for p in owned}
    given_up = before - names - elsewhere
    pruned = remove(merged, shape, {p for p in given_up if not any(q[: len(p)] == p for q in elsewhere | names)})
    assert isinstance(pruned, dict)
    result: Object = {**pruned, "metadata": {**_meta(pruned), **_system(live)}}
    if before != names or manager not in ownership.times or pruned != live_owned:
        ownership.times[manager] = now
    ownership.paths[manager] = names
    ownership.prune()
    metadata(result)["managedFields"] = ownership.write()
    return result


def _meta(obj: Object) -> dict[str, Json]:
    meta = obj.get("metadata")
    return dict(meta) if isinstance(meta, dict) else {}


def owned_object(obj: Object) -> Object:
    """The object without the metadata no manager owns."""
    return {**obj, "metadata": {k: v for k, v in _meta(obj).items() if k not in KEPT_METADATA}}


def _system(live: Object) -> dict[str, Json]:
    return {k: v for k, v in _meta(live).items() if k in KEPT_METADATA and k != "managedFields"}


def manager_for(name: str, api_version: str, subresource: str) -> Manager:
    """The manager of an apply."""
    return Manager(name, APPLY, api_version, subresource)
