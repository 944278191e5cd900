"""ElasticQuota of scheduler-plugins' CapacityScheduling (KEP-9) as a `quota`: `min` is what a namespace is owed, `max`
what it may have, and in between it borrows what is free."""

from __future__ import annotations

import json
from typing import Any

from policyengine.compiler.conversion.reading import ConversionError, checked
from policyengine.quantity import QuantityError, format_bytes, format_cpu, milli_value, value

_BYTES = {"memory": "memory", "ephemeral-storage": "storage"}


def quota(given: object) -> tuple[str, list[str]]:
    """The rule, "" where it would say nothing; and notes for what it cannot say. Raises `ConversionError`."""
    root = checked(given, "elasticQuota")
    name, namespace = root["metadata"]["name"], root["metadata"].get("namespace", "default")
    spec, notes = root.get("spec", {}), []
    fields = []
    for key, written in (("min", "guarantee"), ("max", "limit")):
        amounts = {resource: amount for resource, amount in spec.get(key, {}).items() if resource != "pods"}
        if len(amounts) < len(spec.get(key, {})):
            notes.append(
                f"ElasticQuota `{namespace}/{name}` counts pods, which no quota does; `{key}.pods` was left out"
            )
        if amounts:
            fields.append(f"{written}: {{{', '.join(_amount(one, amounts[one], f'spec.{key}') for one in amounts)}}}")
    if not fields:
        return "", [*notes, f"ElasticQuota `{namespace}/{name}` says nothing; it was left out"]
    head = f"quota {json.dumps(f'{namespace}/{name}')} when pod.namespace == {json.dumps(namespace)}"
    return f"{head} {{ {' '.join(fields)} borrow: true }}", notes


def _amount(resource: str, amount: Any, path: str) -> str:
    try:
        if resource == "cpu":
            return f"cpu: {format_cpu(max(0, milli_value(amount)))}"
        exact = max(0, value(amount))
    except QuantityError as error:
        raise ConversionError(f"`{path}.{resource}`: {error}") from None
    return f"{_BYTES[resource]}: {format_bytes(exact)}" if resource in _BYTES else f"{json.dumps(resource)}: {exact}"
