"""A node's allocatable and capacity, as the scheduler counts them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from policyengine import quantity
from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from policyengine.quantity import QuantityError

LIMIT = 1 << 62
"""Larger amounts are cut to this, so that differences with what is requested stay within int64."""

PODS = "pods"


class Allocatable(NamedTuple):
    """Millicores for cpu, whole units for the rest; `pods` is kept apart."""

    amounts: Mapping[str, int]
    pods: int


def allocatable_of(node: Node) -> Allocatable:
    """The node's allocatable. One that is absent or malformed counts as nothing."""
    try:
        return _parsed(tuple((node.status.allocatable or {}).items()))
    except QuantityError:
        return Allocatable({}, 0)


def unreadable(node: Node) -> str:
    """Why the node's allocatable counts as nothing; "" where it does not."""
    try:
        _parsed(tuple((node.status.allocatable or {}).items()))
    except QuantityError as error:
        return f"status.allocatable: {error}"
    return ""


@lru_cache(maxsize=1024)
def _parsed(written: tuple[tuple[str, str | int | float], ...]) -> Allocatable:
    """Cached, since nodes of one kind have the same. Raises `QuantityError`."""
    amounts = {name: _amount(name, text) for name, text in written}
    pods = amounts.pop(PODS, 0)
    return Allocatable({name: amount for name, amount in amounts.items() if counted(name)}, pods)


def capacity_of(node: Node) -> Mapping[str, int]:
    """The node's capacity, `pods` included; what cannot be read is left out."""
    result = {}
    for name, text in node.status.capacity.items():
        try:
            result[name] = _amount(name, text)
        except QuantityError:
            continue
    return result


def counted(name: str) -> bool:
    """Whether the scheduler counts this resource at all."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)


def _amount(name: str, text: str | int | float) -> int:
    amount = quantity.amount(name, text)
    if amount < 0:
        raise QuantityError(f"`{name}`: `{text}` is negative; write an amount of 0 or more")
    return min(amount, LIMIT)
