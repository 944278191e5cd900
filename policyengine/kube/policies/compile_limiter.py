"""How often the texts of one ConfigMap are compiled: at once where it was quiet, ever later where it flaps.

In between only its newest version is kept. Others do not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable

FREE = 3
"""Versions in a row that are compiled as they come."""
FIRST, MOST = 1.0, 30.0
"""Seconds until the next one is: doubling, from the first value to the second."""
QUIET = 60.0
"""Seconds without a new version after which all is forgotten."""


class Pace:
    """When each ConfigMap may be compiled. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, int]] = {}
        """Key -> when it was compiled last, and how many times in a row."""

    def due(self, key: str) -> float:
        """The earliest time at which the next version is compiled."""
        last, count = self._known.get(key, (0.0, 0))
        return last + min(MOST, FIRST * 2.0 ** (count - FREE)) if count >= FREE else 0.0

    def note(self, key: str, now: float) -> None:
        """A version is compiled now."""
        last, count = self._known.get(key, (now, 0))
        self._known[key] = (now, 1 if now - last >= QUIET else min(count + 1, 32))

    def forget(self, key: str, now: float) -> None:
        """The ConfigMap is gone. One that comes and goes is no quieter than one that changes."""
        last, _ = self._known.get(key, (now, 0))
        if now - last >= QUIET:
            self._known.pop(key, None)

    def tidy(self, keys: Iterable[str], now: float) -> None:
        """Only these are left, or were there lately."""
        for key in self._known.keys() - set(keys):
            self.forget(key, now)
