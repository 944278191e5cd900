"""Parts of a device's capacity: how much a request takes, and whether it is left (KEP-5075, consumable capacity).

Amounts are billionths. A malformed amount fits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policyengine import quantity
from policyengine.cluster.resource_objects import Amount, CapacityRange, CapacityRequestPolicy, Device, DeviceCapacity

Consumption = Mapping[str, int]
"""Capacity -> billionths."""
NOTHING: Final[Consumption] = {}
_NANO: Final = 10**9


def consumption(device: Device, requests: Mapping[str, Amount]) -> Consumption | None:
    """What a request takes of each capacity, rounded as the device's policies want; None where it asks for a
    capacity that the device has not, or an amount that a policy does not allow."""
    if not requests.keys() <= device.capacity.keys():
        return None
    taken: dict[str, int] = {}
    try:
        for name, capacity in device.capacity.items():
            amount = _rounded(requests.get(name), capacity)
            if _is_forbidden(amount, capacity.request_policy):
                return None
            taken[name] = amount
    except quantity.QuantityError:
        return None
    return taken


def fits(device: Device, wanted: Consumption, *others: Consumption) -> bool:
    """Whether the device has room for what is wanted beside what others have."""
    for name, capacity in device.capacity.items():
        total = wanted[name] + sum(other.get(name, 0) for other in others)
        if total > quantity.nanos(capacity.value):
            return False
    return True


def _rounded(request: Amount | None, capacity: DeviceCapacity) -> int:
    policy = capacity.request_policy
    if request is None:
        default = policy.default if policy is not None else None
        return quantity.nanos(capacity.value if default is None else default)
    amount = quantity.nanos(request)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(amount, policy.valid_range)
    larger = (valid for one in policy.valid_values if (valid := quantity.nanos(one)) >= amount)
    return next(larger, amount)


def _rounded_in_range(amount: int, valid: CapacityRange) -> int:
    least = quantity.nanos(valid.min if valid.min is not None else 0)
    if amount < least:
        return least
    if valid.step is None:
        return amount
    start, step = _whole(valid.min), _whole(valid.step)
    steps = -(-(-(-amount // _NANO) - start) // step) if step else 0
    return (start + step * steps) * _NANO


def _is_forbidden(amount: int, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == quantity.nanos(policy.default)):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > quantity.nanos(valid.max):
            return True
        step = _whole(valid.step)
        return bool(step) and (-(-amount // _NANO) - _whole(valid.min)) % step != 0
    allowed = [quantity.nanos(one) for one in policy.valid_values]
    return bool(allowed) and amount not in allowed


def _whole(amount: Amount | None) -> int:
    return 0 if amount is None else quantity.value(amount)
