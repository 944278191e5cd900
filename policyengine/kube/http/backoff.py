"""Delays between tries: they grow, are spread by chance, and honour what the server asks for.

The figures are client-go's for reflectors: 0.8 s doubling to 30 s, spread over once and twice the delay, forgotten
after two quiet minutes. The chance comes from a `Random` passed in, so that a seed reproduces a run.
"""

from __future__ import annotations

from random import Random

from policyengine.clock import Clock


class Backoff:
    """The delays of one thing that may fail again and again."""

    def __init__(
        self, clock: Clock, random: Random, *, first: float = 0.8, limit: float = 30.0, forget: float = 120.0
    ) -> None:
        self._clock = clock
        self._random = random
        self._first = first
        self._limit = limit
        self._forget = forget
        self._next = first
        self._last = clock.monotonic()

    def delay(self, at_least: float = 0.0) -> float:
        """Seconds to wait now; not less than `at_least` (a Retry-After), and spread above it."""
        now = self._clock.monotonic()
        if now - self._last > self._forget:
            self._next = self._first
        base = self._next
        self._next = min(self._next * 2, self._limit)
        wait = max(base, at_least) + base * self._random.random()
        self._last = now + wait
        return wait

    def reset(self) -> None:
        """Start again from the first delay."""
        self._next = self._first
