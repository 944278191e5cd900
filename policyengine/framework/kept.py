"""A bounded map for answers that are asked for in runs: identical pods come one after another."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

V = TypeVar("V")


class _Slot(Generic[V]):
    __slots__ = ("value",)

    def __init__(self, value: V) -> None:
        self.value = value


class Kept(Generic[V]):
    """At most `size` values; the key used longest ago is given up first.

    The key used last is compared before it is hashed: that is the newest entry, so nothing else has to move.
    """

    __slots__ = ("_key", "_slot", "_slots")

    def __init__(self, size: int) -> None:
        self._slots: LRUCache[Hashable, _Slot[V]] = LRUCache(size)
        self._key: Hashable = None
        self._slot: _Slot[V] | None = None

    def get(self, key: Hashable) -> V | None:
        """The value kept under the key."""
        slot = self._slot
        if slot is None or self._key != key:
            slot = self._slots.get(key)
            if slot is None:
                return None
            self._key, self._slot = key, slot
        return slot.value

    def put(self, key: Hashable, value: V) -> None:
        """Keep the value under the key, in place of an older one."""
        slot = self._slot
        if slot is None or self._key != key:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot(value)
            self._key, self._slot = key, slot
        slot.value = value

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._slots)
