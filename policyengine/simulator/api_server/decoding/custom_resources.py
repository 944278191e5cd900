"""Custom resources decoded by an OpenAPI v3 structural schema.

Decoding prunes fields the schema does not know (unless it preserves them), fills in defaults, and checks values, by
rules in CEL too (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from policyengine.language.evaluate import EvaluationError, evaluate
from policyengine.simulator.api_server.decoding.codec import Decoder, json_kind
from policyengine.simulator.api_server.field_errors import invalid, required, unsupported
from policyengine.simulator.api_server.kinds.api_types import struct
from policyengine.simulator.api_server.kinds.served import Kind
from policyengine.simulator.api_server.statuses import Cause, Json
from policyengine.simulator.api_server.storage import Object, child, objects

if TYPE_CHECKING:
    from jsonschema import ValidationError

PRESERVE = "x-kubernetes-preserve-unknown-fields"
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


LIMITS = {
    "minimum": "be greater than or equal to {}",
    "maximum": "be less than or equal to {}",
    "minLength": "be at least {} chars long",
    "minItems": "have at least {} items",
    "minProperties": "have at least {} properties",
    "pattern": "match '{}'",
}
"""What the real server says of a value that breaks a rule of its schema."""


@cache
def _validator() -> Any:
    """OpenAPI 3.0 schemas are those of draft 4."""
    # Imported here: few clusters hold custom resources, and jsonschema takes long to load.
    from jsonschema import Draft4Validator, ValidationError, validators

    def type_(validator: Any, wanted: str, value: Json, schema: Object) -> Iterator[ValidationError]:
        """Null is taken where the schema says so, as OpenAPI has it."""
        if not (value is None and schema.get("nullable")) and not validator.is_type(value, wanted):
            yield ValidationError("")

    def pattern(validator: Any, wanted: str, value: Json, schema: Object) -> Iterator[ValidationError]:
        """What Python cannot read of Go's expressions holds for every text."""
        with suppress(re.error):
            if isinstance(value, str) and not re.search(wanted, value):
                yield ValidationError("")

    return validators.extend(Draft4Validator, {"type": type_, "pattern": pattern})


def validate_custom(obj: Object, kind: Kind) -> list[Cause]:
    """What is wrong with a custom resource by its schema."""
    rest = {k: v for k, v in obj.items() if k != "metadata"}
    errors = _validator()(kind.custom_schema).iter_errors(rest)
    causes = list(dict.fromkeys(cause for error in errors for cause in _causes(error)))
    # As the real server does, rules are asked about objects alone that their schema takes.
    return causes or list(_rule_causes(rest, kind.custom_schema, ""))


def _rule_causes(value: Json, schema: Object, path: str) -> Iterator[Cause]:
    """What rules in CEL say against a value (`x-kubernetes-validations`). Those about `oldSelf` are not known here."""
    for rule in objects(schema.get("x-kubernetes-validations")):
        text = str(rule.get("rule"))
        if "oldSelf" not in text and not _holds(text, value):
            yield Cause("FieldValueInvalid", path, f"Invalid value: {rule.get('message') or f'failed rule: {text}'}")
    known, extra = child(schema, "properties"), schema.get("additionalProperties")
    if isinstance(value, dict):
        for name, inner in value.items():
            below = child(known, name) if name in known else extra
            if isinstance(below, dict):
                yield from _rule_causes(inner, below, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _rule_causes(inner, child(schema, "items"), f"{path}[{at}]")


def _holds(rule: str, value: Json) -> bool:
    try:
        return evaluate(rule, {"self": value}) is True
    except EvaluationError:
        return False
    except TypeError:  # nested deeper than is evaluated here
        return True


def _causes(error: ValidationError) -> Iterator[Cause]:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
    rule, value, at = error.validator, cast(Json, error.instance), path or "<nil>"
    limit = cast(Any, error.validator_value)
    if rule == "required" and isinstance(value, dict):
        yield from (required(f"{path}.{name}".lstrip(".")) for name in limit if name not in value)
    elif rule == "type":
        found = "integer" if type(value) is int else {"bool": "boolean"}.get(json_kind(value), json_kind(value))
        yield invalid(at, found, f'{at} in body must be of type {limit}: "{found}"')
    elif rule == "enum":
        yield unsupported(at, value, tuple(map(str, limit)))
    elif rule == "maxLength":
        yield Cause("FieldValueTooLong", at, f"Too long: may not be more than {limit} bytes")
    elif rule == "maxItems" and isinstance(value, list):
        yield Cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {limit} items")
    else:
        shown = len(value) if isinstance(value, list | dict) else value
        said = LIMITS.get(str(rule))
        yield invalid(at, shown, f"{at} in body should {said.format(limit)}" if said else error.message)
