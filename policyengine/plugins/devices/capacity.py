"""The capacities of a device that several requests share (KEP-5075): which part a request takes, whether it fits.

Amounts stay as they were written until they are compared, exactly. A malformed amount fits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policyengine import quantity
from policyengine.cluster.device_objects import Amount, CapacityRequestPolicy, Device, DeviceCapacity

Consumption = Mapping[str, Amount]
"""Capacity -> the amount, written as the request, the policy or the device has it."""
NOTHING: Final[Consumption] = {}


def consumption(device: Device, requests: Mapping[str, Amount]) -> Consumption | None:
    """What a request takes of each capacity, rounded as the device's policies want; None where it asks for a
    capacity that the device has not, or an amount that a policy does not allow."""
    if not requests.keys() <= device.capacity.keys():
        return None
    taken: dict[str, Amount] = {}
    try:
        for name, capacity in device.capacity.items():
            amount = _rounded(requests.get(name), capacity)
            if _is_forbidden(quantity.nanos(amount), capacity.request_policy):
                return None
            taken[name] = amount
    except quantity.QuantityError:
        return None
    return taken


def fits(device: Device, held: Mapping[str, int], wanted: Consumption, *others: Consumption) -> bool:
    """Whether the device has room for what is wanted beside what others have; `held` in billionths."""
    for name, capacity in device.capacity.items():
        total = held.get(name, 0) + sum(quantity.nanos(one[name]) for one in (wanted, *others))
        if total > quantity.nanos(capacity.value):
            return False
    return True


def _rounded(request: Amount | None, capacity: DeviceCapacity) -> Amount:
    policy = capacity.request_policy
    if request is None:
        default = policy.default if policy is not None else None
        return capacity.value if default is None else default
    if policy is None:
        return request
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(request, policy.valid_range.min, policy.valid_range.step)
    amount = quantity.nanos(request)
    return next((valid for valid in policy.valid_values if quantity.nanos(valid) >= amount), request)


def _rounded_in_range(request: Amount, least: Amount, step: Amount | None) -> Amount:
    if quantity.nanos(request) < quantity.nanos(least):
        return least
    width = _whole(step)
    if not width:
        return request
    start = quantity.value(least)
    return quantity.format_bytes(start + width * -(-(quantity.value(request) - start) // width))


def _is_forbidden(amount: int, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == quantity.nanos(policy.default)):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > quantity.nanos(valid.max):
            return True
        step = _whole(valid.step)
        return bool(step) and (-(-amount // 10**9) - _whole(valid.min)) % step != 0
    allowed = [quantity.nanos(one) for one in policy.valid_values]
    return bool(allowed) and amount not in allowed


def _whole(amount: Amount | None) -> int:
    return 0 if amount is None else quantity.value(amount)
