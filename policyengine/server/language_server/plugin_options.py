"""A plugin's arguments: what its JSON schema says about a key at a path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policyengine.server.language_server.cursor import Cursor
from policyengine.server.language_server.project import Reading


def properties_at(schema: object, path: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The arguments inside of a path of keys, with their schemas; items of lists count as their list."""
    for name in path:
        schema = _below(schema).get(name, {})
    return _below(schema)


def values_at(schema: object, path: Sequence[str]) -> list[Any]:
    """The values a key may have, where these are few."""
    inner = properties_at(schema, path[:-1]).get(path[-1], {}) if path else {}
    if isinstance(inner.get("items"), Mapping):
        inner = inner["items"]
    if inner.get("type") == "boolean":
        return [True, False]
    return list(inner.get("enum", ()))


def _below(schema: object) -> Mapping[str, Mapping[str, Any]]:
    while isinstance(schema, Mapping) and "properties" not in schema and isinstance(schema.get("items"), Mapping):
        schema = schema["items"]
    found = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def argument_values(reading: Reading, cursor: Cursor) -> list[object]:
    """The values the argument of a plugin may have at the cursor, where these are few."""
    facts = reading.toolchain.plugins.get(cursor.before[1].text.strip("\"'")) if len(cursor.before) > 1 else None
    if facts is None:
        return []
    key = [cursor.before[-2].text.strip("\"'")] if cursor.last == "COLON" and len(cursor.before) > 2 else []
    return values_at(facts.arguments, [*cursor.keys, *key])
