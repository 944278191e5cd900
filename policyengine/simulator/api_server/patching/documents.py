"""Merge patches (RFC 7386) and JSON patches (RFC 6902)."""

from typing import cast

from policyengine.simulator.api_server.decoding.codec import json_kind
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


def refused(why: str) -> ApiError:
    """422: the patch does not fit the object."""
    error = ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})
    error.add_note(why)
    return error


def _steps(pointer: Json) -> list[str]:
    if not isinstance(pointer, str):
        raise bad_request("json patch: an operation has no path")
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise refused(f"the path {pointer!r} does not start with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _index(step: str, length: int, adding: bool) -> int:
    if step == "-" and adding:
        return length
    if not step.lstrip("-").isdecimal():
        raise refused(f"{step!r} is no index")
    at = int(step) + (length if step.startswith("-") else 0)
    if not 0 <= at < length + (1 if adding else 0):
        raise refused(f"the index {step} is out of range")
    return at


def _get(value: Json, steps: list[str]) -> Json:
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list):
            value = value[_index(step, len(value), adding=False)]
        else:
            raise refused(f"there is no {step!r} in the object")
    return value


def _add(value: Json, steps: list[str], new: Json) -> Json:
    if not steps:
        return new
    parent = _get(value, steps[:-1])
    if isinstance(parent, dict):
        parent[steps[-1]] = new
    elif isinstance(parent, list):
        parent.insert(_index(steps[-1], len(parent), adding=True), new)
    else:
        raise refused(f"{steps[-1]!r} has no parent to be added to")
    return value


def _remove(value: Json, steps: list[str]) -> Json:
    if not steps:
        return None
    parent = _get(value, steps[:-1])
    if isinstance(parent, dict) and steps[-1] in parent:
        del parent[steps[-1]]
    elif isinstance(parent, list):
        del parent[_index(steps[-1], len(parent), adding=False)]
    else:
        raise refused(f"there is no {steps[-1]!r} to remove")
    return value


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    return [_copy(v) for v in value] if isinstance(value, list) else value


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
    value: Json = _copy(target)
    for operation in patch:
        if not isinstance(operation, dict):
            raise bad_request("json patch: an operation is no object")
        value = _operate(value, operation)
    return value


def _operate(value: Json, operation: dict[str, Json]) -> Json:
    steps, given = _steps(operation.get("path")), _copy(operation.get("value"))
    match operation.get("op"):
        case "add":
            return _add(value, steps, given)
        case "remove":
            return _remove(value, steps)
        case "replace":
            _get(value, steps)
            return _replace(value, steps, given)
        case "test":
            if _get(value, steps) != given:
                raise refused(f"testing path {operation.get('path')} failed")
            return value
        case "move":
            origin = _steps(operation.get("from"))
            moved = _get(value, origin)
            return _add(_remove(value, origin), steps, moved)
        case "copy":
            return _add(value, steps, _copy(_get(value, _steps(operation.get("from")))))
        case other:
            raise refused(f"Unexpected kind: {other}")


def _replace(value: Json, steps: list[str], new: Json) -> Json:
    if not steps:
        return new
    parent = _get(value, steps[:-1])
    if isinstance(parent, list):
        parent[_index(steps[-1], len(parent), adding=False)] = new
    else:
        cast("dict[str, Json]", parent)[steps[-1]] = new
    return value
