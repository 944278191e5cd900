"""Merge patches (RFC 7386), JSON patches (RFC 6902) and strategic merge patches.

A strategic merge patch merges lists by a key; merge keys and strategies come from the schema. Its directives are
`$patch: delete|replace|merge` in an object or list item, `$deleteFromPrimitiveList/f`, `$setElementOrder/f` and
`$retainKeys` (https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md).
"""

from copy import deepcopy
from typing import Any

from policyengine.simulator.api_server.decoding.codec import json_kind
from policyengine.simulator.api_server.kinds.api_types import Field, Struct, Type, struct
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request

MAX_OPERATIONS = 10_000


def merge(target: Json, patch: Json) -> Json:
    """`target` with a merge patch applied: null removes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge(out.get(key), value)
    return out


def refused() -> ApiError:
    """422: the patch does not fit the object."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def _steps(pointer: Json) -> list[str]:
    if not isinstance(pointer, str):
        raise bad_request("json patch: an operation has no path")
    if pointer and not pointer.startswith("/"):
        raise refused()
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _key(parent: Json, step: str, adding: bool = False) -> str | int:
    """What a step names in an object or array that holds it, or, `adding`, is to hold it."""
    if isinstance(parent, dict) and (adding or step in parent):
        return step
    if isinstance(parent, list):
        length = len(parent)
        if adding and step == "-":
            return length
        at = int(step) if step.removeprefix("-").isdecimal() else length + 1
        at += length if step.startswith("-") else 0
        if 0 <= at < length + adding:
            return at
    raise refused()


def _get(value: Any, steps: list[str]) -> Any:
    for step in steps:
        value = value[_key(value, step)]
    return value


def _add(value: Json, steps: list[str], new: Json) -> Json:
    if not steps:
        return new
    parent = _get(value, steps[:-1])
    key = _key(parent, steps[-1], adding=True)
    if isinstance(parent, list):
        parent.insert(int(key), new)
    else:
        parent[key] = new
    return value


def _remove(value: Json, steps: list[str]) -> Json:
    if not steps:
        return None
    parent = _get(value, steps[:-1])
    del parent[_key(parent, steps[-1])]
    return value


def apply_json_patch(target: dict[str, Json], patch: Json) -> Json:
    """`target` with a JSON patch applied; raises 400 for no patch and 422 for one that does not fit."""
    if not isinstance(patch, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    if len(patch) > MAX_OPERATIONS:
        raise ApiError(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(patch)}",
        )
    value: Json = deepcopy(target)
    for operation in patch:
        if not isinstance(operation, dict):
            raise bad_request("json patch: an operation is no object")
        value = _operate(value, operation)
    return value


def _operate(value: Json, operation: dict[str, Json]) -> Json:
    steps, given, what = _steps(operation.get("path")), deepcopy(operation.get("value")), operation.get("op")
    if what == "test":
        if _get(value, steps) != given:
            raise refused()
        return value
    if what not in ("add", "remove", "replace", "move", "copy"):
        raise refused()
    origin = _steps(operation.get("from")) if what in ("move", "copy") else steps
    if what in ("move", "copy"):
        given = deepcopy(_get(value, origin))
    if what in ("remove", "replace", "move"):
        value = _remove(value, origin)
    return value if what == "remove" else _add(value, steps, given)


PATCH, RETAIN = "$patch", "$retainKeys"
DELETE_PRIMITIVES, ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"


def apply_strategic(target: dict[str, Json], patch: Json, type_: Struct) -> dict[str, Json]:
    """`target` with a strategic merge patch applied; raises a 400."""
    if patch is None:
        return target
    if not isinstance(patch, dict):
        raise bad_request(f"json: cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}")
    merged = _merge_object(target, patch, Type("struct", ref=type_.ref))
    return merged if merged is not None else {}


def _field(type_: Type, name: str) -> Field | None:
    return struct(type_.ref).fields.get(name) if type_.kind == "struct" else None


def _below(type_: Type, name: str) -> Type:
    known = _field(type_, name)
    if known is not None:
        return known.type
    return type_.elem if type_.kind == "map" and type_.elem else Type("raw")


def _merge_object(target: Json, patch: dict[str, Json], type_: Type) -> dict[str, Json] | None:
    """The merged object, or None where the patch deletes it."""
    directive = patch.get(PATCH)
    if directive == "delete":
        return None
    if directive == "replace":
        return {k: v for k, v in patch.items() if k != PATCH}
    if directive not in (None, "merge"):
        shown = " ".join(f"{name}:{patch[name]}" for name in sorted(patch))
        raise ApiError(500, "", f"unknown patch type: {directive} in map: map[{shown}]")
    out = dict(target) if isinstance(target, dict) else {}
    retained = patch.get(RETAIN)
    if isinstance(retained, list):
        out = {k: v for k, v in out.items() if k in retained}
    for key, value in patch.items():
        if key.startswith(DELETE_PRIMITIVES):
            _delete_primitives(out, key.removeprefix(DELETE_PRIMITIVES), value)
        elif not key.startswith("$"):
            _merge_field(out, key, value, type_, patch.get(ORDER + key))
    for key, order in patch.items():
        if key.startswith(ORDER) and key.removeprefix(ORDER) not in patch:
            _reorder(out, key.removeprefix(ORDER), order, type_)
    return out


def _merge_field(out: dict[str, Json], key: str, value: Json, type_: Type, order: Json) -> None:
    if value is None:
        out.pop(key, None)
        return
    below = _below(type_, key)
    if isinstance(value, dict):
        merged = _merge_object(out.get(key), value, below)
        if merged is None:
            out.pop(key, None)
        else:
            out[key] = merged
        return
    known = _field(type_, key)
    if isinstance(value, list) and known is not None and "merge" in known.strategies:
        out[key] = _merge_list(out.get(key), value, known)
        if order is not None:
            _reorder(out, key, order, type_)
        return
    out[key] = _plain(value)


def _plain(value: Json) -> Json:
    """A replacing list, without the directives its items may carry."""
    if isinstance(value, list):
        return [_plain(item) for item in value if not (isinstance(item, dict) and PATCH in item)]
    return value


def _merge_list(target: Json, patch: list[Json], known: Field) -> Json:
    current = list(target) if isinstance(target, list) else []
    if any(isinstance(item, dict) and item.get(PATCH) == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and PATCH in item)]
    if not known.merge_key:
        return current + [item for item in patch if item not in current]
    elem = known.type.elem or Type("raw")
    for item in patch:
        if not isinstance(item, dict):
            raise bad_request(f"an item of `{known.name}` is no object")
        _merge_item(current, item, known.merge_key, elem)
    return current


def _merge_item(current: list[Json], item: dict[str, Json], merge_key: str, elem: Type) -> None:
    if merge_key not in item:
        shown = " ".join(f"{name}:{item[name]}" for name in sorted(item))
        raise ApiError(500, "", f"map: map[{shown}] does not contain declared merge key: {merge_key}")
    at = next(
        (i for i, held in enumerate(current) if isinstance(held, dict) and held.get(merge_key) == item[merge_key]),
        None,
    )
    if item.get(PATCH) == "delete":
        if at is not None:
            del current[at]
        return
    # New items come first, as the real merge puts the patch before what it was applied to.
    merged = _merge_object(current[at] if at is not None else {}, item, elem)
    if at is None:
        patched = sum(1 for held in current if isinstance(held, _Placed))
        current.insert(patched, _Placed(merged or {}))
    else:
        current[at] = merged


class _Placed(dict[str, Json]):
    """An item this patch put in; a plain dict to everyone else."""


def _delete_primitives(out: dict[str, Json], key: str, values: Json) -> None:
    current = out.get(key)
    if isinstance(current, list) and isinstance(values, list):
        out[key] = [item for item in current if item not in values]


def _reorder(out: dict[str, Json], key: str, order: Json, type_: Type) -> None:
    """Items named by the order stand in that order; the rest keep their place relative to those before them."""
    current, known = out.get(key), _field(type_, key)
    if not isinstance(current, list) or not isinstance(order, list) or known is None:
        return

    def identity(item: Json) -> str:
        return str(item.get(known.merge_key)) if isinstance(item, dict) else str(item)

    rank = {identity(item): at for at, item in enumerate(order)}
    named = sorted((item for item in current if identity(item) in rank), key=lambda item: rank[identity(item)])
    out[key] = [named.pop(0) if identity(item) in rank else item for item in current]
