"""The JSON schema of the entries of a recording, made of what is written and read: `policyengine replay --schema`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from policyengine.cluster.objects import Wire
from policyengine.recording.encoding import BEGAN, DIGEST, KNOWN, MAY_BIND, POLICY, Began, RecordedPolicy, message_types
from policyengine.scheduler.actions import Action

Json = dict[str, Any]
_AS_SENT: Final[Json] = {"type": "object", "description": "as the API writes it, with the fields that scheduling reads"}


def schema() -> Json:
    """Of one entry, as JSON has what MessagePack has."""
    told = message_types()
    asked: dict[str, type[Any]] = {one.__name__: one for one in Action.__subclasses__()}
    types: dict[str, type[Any]] = {**told, **asked, BEGAN: Began, POLICY: RecordedPolicy}
    found, components = msgspec.json.schema_components(
        list(types.values()), schema_hook=lambda kind: {"description": "any value"}, ref_template="#/$defs/{name}"
    )
    refs = dict(zip(types, found, strict=True))
    wires = {one.__name__ for one in _below(Wire)}
    defs = {name: _AS_SENT if name in wires else one for name, one in components.items()}
    actions = {"type": "array", "items": _any(_array({"const": name}, refs[name]) for name in asked)}
    now = {"type": ["number", "null"]}
    entries = [
        _array({"type": "null"}, {"const": BEGAN}, refs[BEGAN]),
        _array({"type": "null"}, {"const": POLICY}, refs[POLICY]),
        _array({"type": "null"}, {"const": DIGEST}, {"type": "string", "pattern": "^[0-9a-f]{16}$"}),
        _array({"type": "null"}, {"const": MAY_BIND}, _array({"type": "string"}, {"type": "boolean"})),
        *(_array({"const": KNOWN}, {"const": name}, refs[name]) for name in told),
        *(_array(now, {"const": name}, refs[name], {"$ref": "#/$defs/actions"}, least=3) for name in told),
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An entry of a recording of policyengine, version 1",
        **_any(entries),
        "$defs": _reached({"actions": actions, **defs}, entries),
    }


def _array(*items: Json, least: int | None = None) -> Json:
    count = len(items) if least is None else least
    return {"type": "array", "prefixItems": list(items), "items": False, "minItems": count}


def _any(schemas: Any) -> Json:
    return {"anyOf": list(schemas)}


def _below(kind: type) -> set[type]:
    found: list[type] = kind.__subclasses__()
    return {*found, *(one for child in found for one in _below(child))}


def _reached(defs: Json, begin: Any) -> Json:
    """Those definitions that are referred to."""
    found: Json = {}
    waiting = [begin]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix("#/$defs/")
            if name and name not in found:
                found[name] = defs[name]
                waiting.append(defs[name])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return dict(sorted(found.items()))
