"""Custom resources decoded by an OpenAPI v3 structural schema.

Decoding prunes fields the schema does not know (unless it preserves them), fills in defaults, and checks values
(https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/).
"""

import re
from collections.abc import Iterator

from policyengine.simulator.api_server.decoding.codec import Decoder
from policyengine.simulator.api_server.field_errors import invalid, required, unsupported
from policyengine.simulator.api_server.kinds.schema import struct
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.store import Object, child

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"


class CustomDecoder:
    """Decodes a custom resource: metadata by its type, all else by the schema."""

    def __init__(self, kind: Kind) -> None:
        self.unknown: list[str] = []
        self._schema = kind.custom_schema

    def decode(self, value: Object) -> Object:
        """The pruned and defaulted object; raises DecodeError for metadata of the wrong type."""
        decoder = Decoder()
        meta = decoder.struct(value.get("metadata") or {}, struct("meta:ObjectMeta"), "metadata.")
        self.unknown += decoder.unknown
        rest = {k: v for k, v in value.items() if k != "metadata"}
        pruned = self._prune(rest, self._schema, "")
        assert isinstance(pruned, dict)
        return {"metadata": meta, **pruned}

    def _prune(self, value: Json, schema: Object, path: str) -> Json:
        if isinstance(value, dict):
            return self._prune_object(value, schema, path)
        if isinstance(value, list):
            items = child(schema, "items")
            return [self._prune(item, items, f"{path[:-1]}[{at}].") for at, item in enumerate(value)]
        return value

    def _prune_object(self, value: Object, schema: Object, path: str) -> Json:
        known, extra = child(schema, "properties"), schema.get("additionalProperties")
        keep = bool(schema.get(PRESERVE)) or extra is True
        if schema.get(EMBEDDED):
            known = {**known, "apiVersion": {}, "kind": {}, "metadata": {PRESERVE: True}}
        out: Object = {}
        for name, given in value.items():
            if name in known:
                out[name] = self._prune(given, child(known, name), f"{path}{name}.")
            elif isinstance(extra, dict):
                out[name] = self._prune(given, extra, f"{path}{name}.")
            elif keep:
                out[name] = given
            else:
                self.unknown.append(f"{path}{name}")
        for name in known:
            below = child(known, name)
            if "default" in below and (name not in out or (out[name] is None and not below.get("nullable"))):
                out[name] = self._prune(below["default"], below, f"{path}{name}.")
        return out


TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def validate_custom(obj: Object, kind: Kind) -> list[Cause]:
    """What is wrong with a custom resource by its schema."""
    rest = {k: v for k, v in obj.items() if k != "metadata"}
    return list(_validate(rest, kind.custom_schema, ""))


def _type_name(value: Json) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return {"dict": "object", "list": "array", "str": "string"}.get(type(value).__name__, "null")


def _validate(value: Json, schema: Object, path: str) -> Iterator[Cause]:
    at = path or "<nil>"
    wanted = schema.get("type")
    if value is None:
        if not schema.get("nullable") and wanted:
            yield invalid(at, "null", f'{at} in body must be of type {wanted}: "null"')
        return
    if isinstance(wanted, str) and not schema.get(INT_OR_STRING):
        fits = isinstance(value, TYPES.get(wanted, (object,))) and (wanted == "boolean" or not isinstance(value, bool))
        if not fits:
            yield invalid(at, _type_name(value), f'{at} in body must be of type {wanted}: "{_type_name(value)}"')
            return
    if isinstance(value, dict):
        yield from _validate_object(value, schema, path)
    elif isinstance(value, list):
        yield from _validate_list(value, schema, path)
    else:
        yield from _validate_scalar(value, schema, at)


def _validate_object(value: Object, schema: Object, path: str) -> Iterator[Cause]:
    needed = schema.get("required")
    for name in needed if isinstance(needed, list) else []:
        if str(name) not in value:
            yield required(f"{path}.{name}".lstrip("."))
    known, extra = child(schema, "properties"), schema.get("additionalProperties")
    for name, given in value.items():
        below = child(known, name) if name in known else extra if isinstance(extra, dict) else None
        if below is not None:
            yield from _validate(given, below, f"{path}.{name}".lstrip("."))


def _validate_list(value: list[Json], schema: Object, path: str) -> Iterator[Cause]:
    limit, least = schema.get("maxItems"), schema.get("minItems")
    if isinstance(limit, int) and len(value) > limit:
        yield Cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {limit} items")
    if isinstance(least, int) and len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    items = child(schema, "items")
    for at, item in enumerate(value):
        yield from _validate(item, items, f"{path}[{at}]")


def _validate_scalar(value: Json, schema: Object, at: str) -> Iterator[Cause]:
    allowed = schema.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        yield unsupported(at, value, tuple(str(item) for item in allowed))
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if isinstance(least, int | float) and value < least:
            yield invalid(at, value, f"{at} in body should be greater than or equal to {least}")
        if isinstance(most, int | float) and value > most:
            yield invalid(at, value, f"{at} in body should be less than or equal to {most}")
    if isinstance(value, str):
        yield from _validate_text(value, schema, at)


def _validate_text(value: str, schema: Object, at: str) -> Iterator[Cause]:
    least, most, pattern = schema.get("minLength"), schema.get("maxLength"), schema.get("pattern")
    if isinstance(least, int) and len(value) < least:
        yield invalid(at, value, f"{at} in body should be at least {least} chars long")
    if isinstance(most, int) and len(value) > most:
        yield Cause("FieldValueTooLong", at, f"Too long: may not be more than {most} bytes")
    if isinstance(pattern, str) and not _matches(pattern, value):
        yield invalid(at, value, f"{at} in body should match '{pattern}'")


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True
