"""What a CEL selector reads of a device: devices that are alike in it share the selector's answer.

Only where the text shows it: every use of `device` is `device.driver`, `device.allowMultipleAllocations`, or an
attribute or a capacity under a domain and an id that are written out. All other selectors are asked device by device.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Final

from policyengine.cluster.objects import Device
from policyengine.cluster.resource_objects import DeviceAttribute
from policyengine.language import syntax
from policyengine.language.parse_expression import parse_expression
from policyengine.language.syntax.syntax_walk import children

Reads = frozenset[tuple[str, str]]
"""(domain, id) of attributes."""

_SCALARS: Final = ("driver", "allowMultipleAllocations")
_KEPT: Final = 1024


@lru_cache(maxsize=_KEPT)
def attributes_read(expression: str) -> Reads | None:
    """The attributes that the selector can depend on, besides driver and capacities; None: on anything."""
    tree, findings = parse_expression(expression)
    if tree is None or findings:
        return None
    found: set[tuple[str, str]] = set()
    return frozenset(found) if _gather(tree, found) else None


def likeness(driver: str, device: Device, reads: Reads) -> Hashable:
    """Equal for devices of which a selector that reads this says the same; None where that cannot be told."""
    if any(one == DeviceAttribute() for one in device.attributes.values()):
        return None
    seen: list[Hashable] = []
    for domain, identifier in sorted(reads):
        named = device.attributes.get(f"{domain}/{identifier}")
        own = device.attributes.get(identifier) if domain == driver else None
        if named is not None and own is not None:
            return None
        seen.append(_value(named if own is None else own))
    # A malformed version or amount is an error whichever attribute a selector reads.
    versions = tuple((name, one.version_value) for name, one in device.attributes.items() if one.version_value)
    capacities = tuple((name, str(one.value)) for name, one in device.capacity.items())
    return driver, device.allow_multiple_allocations, tuple(seen), versions, capacities


def _value(attribute: DeviceAttribute | None) -> Hashable:
    if attribute is None:
        return None
    # Kept apart by their places: to Python 1 and True are equal.
    return attribute.int_value, attribute.bool_value, attribute.string_value, attribute.version_value


def _gather(expr: syntax.Expr, found: set[tuple[str, str]]) -> bool:
    """Add what is read; False where something else is."""
    path = _path(expr)
    if path:
        kind, rest = path[0], path[1:]
        if kind == "attributes" and len(rest) >= 2:
            found.add((rest[0], rest[1]))
            return True
        return (kind in _SCALARS and not rest) or (kind == "capacity" and len(rest) >= 2)
    if isinstance(expr, syntax.Name) and expr.name == "device":
        return False
    return all(_gather(child, found) for child in children(expr))


def _path(expr: syntax.Expr) -> list[str]:
    """`device.attributes["d"].id` as ["attributes", "d", "id"]; empty where the expression is no such path."""
    steps: list[str] = []
    while not isinstance(expr, syntax.Name):
        if isinstance(expr, syntax.Select):
            steps.append(expr.field)
        elif (
            isinstance(expr, syntax.Index) and isinstance(expr.key, syntax.Literal) and isinstance(expr.key.value, str)
        ):
            steps.append(expr.key.value)
        else:
            return []
        expr = expr.operand
    return steps[::-1] if expr.name == "device" else []
