"""The devices that allocated claims hold, kept up to date claim by claim.

Devices given with admin access are not held. A device that allows several allocations is held in shares, each
with what it consumes of the capacities (KEP-5075).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from policyengine import quantity
from policyengine.cluster.objects import AllocationResult, ResourceClaim
from policyengine.cluster.pending_claims import PendingClaim
from policyengine.plugins.devices.device import DeviceID
from policyengine.plugins.devices.device_capacity import NOTHING, Consumption

_Holding = tuple[DeviceID, bool, tuple[tuple[str, int], ...]]
"""Device, whether it is a share, and what the share consumes."""


class Taken:
    """Who holds what, as the claims seen last, and the reservations, say."""

    def __init__(self) -> None:
        self._claims: dict[str, ResourceClaim] = {}
        self._pending: tuple[PendingClaim, ...] = ()
        self._whole: Counter[DeviceID] = Counter()
        self._shares: Counter[DeviceID] = Counter()
        self._consumed: dict[DeviceID, Counter[str]] = {}
        self._versions: Counter[tuple[str, str]] = Counter()

    def is_held(self, device: DeviceID) -> bool:
        """Whether a claim has the device for itself."""
        return self._whole[device] > 0

    def is_shared(self, device: DeviceID) -> bool:
        """Whether claims have shares of the device."""
        return self._shares[device] > 0

    def consumed(self, device: DeviceID) -> Consumption:
        """What the shares of the device consume."""
        return self._consumed.get(device, NOTHING)

    def version(self, pool: tuple[str, str]) -> int:
        """Grows whenever somebody takes or gives back a device of the pool (driver, name)."""
        return self._versions[pool]

    def follow(self, claims: Mapping[str, object], pending: Iterable[PendingClaim]) -> None:
        """Bring it up to date with the claims there are, by key, and with those under way."""
        for key in [key for key in self._claims if key not in claims]:
            self._count(self._claims.pop(key).status.allocation, -1)
        for key, claim in claims.items():
            known = self._claims.get(key)
            if known is claim or not isinstance(claim, ResourceClaim):
                continue
            if known is not None:
                self._count(known.status.allocation, -1)
            self._claims[key] = claim
            self._count(claim.status.allocation, 1)
        before, self._pending = self._pending, tuple(pending)
        for one in before:
            if one not in self._pending:
                self._count(one.allocation, -1)
        for one in self._pending:
            if one not in before:
                self._count(one.allocation, 1)

    def _count(self, allocation: AllocationResult | None, sign: int) -> None:
        for device, is_share, consumed in _holdings(allocation):
            self._versions[device[:2]] += 1
            (self._shares if is_share else self._whole)[device] += sign
            if is_share:
                amounts = self._consumed.setdefault(device, Counter())
                for name, amount in consumed:
                    amounts[name] += sign * amount


def _holdings(allocation: AllocationResult | None) -> Iterable[_Holding]:
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            consumed = tuple((name, _nanos(amount)) for name, amount in result.consumed_capacity.items())
            yield (result.driver, result.pool, result.device), result.share_id is not None, consumed


def _nanos(amount: str | int | float) -> int:
    try:
        return quantity.nanos(amount)
    except quantity.QuantityError:
        return 0
