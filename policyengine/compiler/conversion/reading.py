"""A configuration as data: held against its form, and what of it nobody knows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from policyengine.checked_yaml import schema_errors


class ConversionError(ValueError):
    """A configuration that cannot be read; one sentence that says where and what was expected."""


def checked(value: object, form: str) -> dict[str, Any]:
    """A document without its nulls, which mean the same as nothing.

    Arguments:
        form: what of `configurations.schema.json` it is held against.

    Raises:
        ConversionError: it is not of that form.
    """
    data = _without_nulls(value)
    schema = _schemas()
    found: Any = next(schema_errors(data, {**schema, **schema["$defs"].get(form, {})}), None)
    if found is None:
        return data  # type: ignore[no-any-return]
    path = found.json_path.removeprefix("$").removeprefix(".")
    if found.validator == "required":
        missing = next(name for name in found.validator_value if name not in found.instance)
        raise ConversionError(f"`{path}.{missing}` is missing" if path else f"`{missing}` is missing")
    raise ConversionError(f"`{path or 'the document'}` is not {found.schema['title']}")


def passed_over(data: Mapping[str, Any], form: str, path: str = "") -> list[str]:
    """A note for each field of a checked document that its form does not know."""
    return [f"`{place}` is not known; it was passed over" for place in _unknown(data, _schemas()["$defs"][form], path)]


def _unknown(data: object, schema: Any, path: str) -> Iterator[str]:
    if schema is True:
        return
    if "$ref" in schema:
        schema = _schemas()["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(data, list):
        for number, one in enumerate(data):
            yield from _unknown(one, schema.get("items", True), f"{path}[{number}]")
    elif isinstance(data, dict) and "properties" in schema:
        for key, inner in data.items():
            place = f"{path}.{key}" if path else key
            if key in schema["properties"]:
                yield from _unknown(inner, schema["properties"][key], place)
            else:
                yield place


@cache
def _schemas() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(__package__).joinpath("configurations.schema.json").read_bytes())
    return found


def _without_nulls(value: object) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, float) and value.is_integer():
        return int(value)  # to a JSON schema, 3.0 is an integer
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
