"""Whether data surely fits a JSON schema, told without jsonschema: it takes longer to load than a policy to check.

Only a yes counts. Where something is wrong, or a schema says what is not understood here, jsonschema is asked, which
also says what is wrong. The schemas are those of plugins' arguments (JSON Schema 2020-12).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_SAID_TO_PEOPLE = frozenset({"title", "description", "default", "examples", "$schema", "$comment"})


def surely_fits(schema: object, data: object) -> bool:
    """Whether the data fits; False also where that cannot be told."""
    return isinstance(schema, Mapping) and all(
        keyword in _SAID_TO_PEOPLE or (keyword in _HOLDS and _HOLDS[keyword](value, data, schema))
        for keyword, value in schema.items()
    )


def _is_number(data: object) -> bool:
    return isinstance(data, int | float) and not isinstance(data, bool)


_TYPES: Mapping[str, Callable[[object], bool]] = {
    "object": lambda data: isinstance(data, dict),
    "array": lambda data: isinstance(data, list),
    "string": lambda data: isinstance(data, str),
    "boolean": lambda data: isinstance(data, bool),
    "integer": lambda data: isinstance(data, int) and not isinstance(data, bool),
    "number": _is_number,
}


def _has_type(names: str | list[str], data: object) -> bool:
    return any(name in _TYPES and _TYPES[name](data) for name in ([names] if isinstance(names, str) else names))


def _is_among(values: list[object], data: object) -> bool:
    """JSON's `1` and `true` are two things; whether `1` and `1.0` are one is left to jsonschema."""
    return any(type(data) is type(value) and data == value for value in values) and not isinstance(data, dict | list)


def _others_fit(rest: object, data: object, schema: Mapping[str, Any]) -> bool:
    """`additionalProperties`, whether it forbids them or says what they are."""
    if not isinstance(data, dict) or "patternProperties" in schema:
        return not isinstance(data, dict)
    others = [value for name, value in data.items() if name not in schema.get("properties", {})]
    if isinstance(rest, bool):
        return rest or not others
    return all(surely_fits(rest, value) for value in others)


_HOLDS: Mapping[str, Callable[[Any, Any, Mapping[str, Any]], bool]] = {
    "type": lambda names, data, _: _has_type(names, data),
    "enum": lambda values, data, _: _is_among(values, data),
    "const": lambda value, data, _: _is_among([value], data),
    "minimum": lambda least, data, _: not _is_number(data) or data >= least,
    "maximum": lambda most, data, _: not _is_number(data) or data <= most,
    "minLength": lambda least, data, _: not isinstance(data, str) or len(data) >= least,
    "pattern": lambda pattern, data, _: not isinstance(data, str) or re.search(pattern, data) is not None,
    "minItems": lambda least, data, _: not isinstance(data, list) or len(data) >= least,
    "items": lambda each, data, _: not isinstance(data, list) or all(surely_fits(each, item) for item in data),
    "required": lambda names, data, _: not isinstance(data, dict) or all(name in data for name in names),
    "properties": lambda known, data, _: (
        not isinstance(data, dict) or all(surely_fits(known[name], data[name]) for name in data if name in known)
    ),
    "additionalProperties": _others_fit,
}
"""Keyword -> whether it surely holds of data that it says something about, and of all other."""
