"""When a request may go out: a token bucket, as client-go's flow control has it, and delays between tries.

The bucket (`clientConnection.qps`, `burst`) is for all requests but leases and reviews: a lease must not wait behind
bindings. The delays are client-go's for reflectors: 0.8 s doubling to 30 s, spread over once and twice the delay,
forgotten after two quiet minutes. The chance comes from a `Random` passed in, so that a seed reproduces a run.
"""

from __future__ import annotations

from random import Random

from policyengine.clock import Clock

LONGEST, FORGOTTEN_AFTER = 30.0, 120.0
"""Seconds: of the longest delay before it is spread, and after which the delays begin anew."""


class TokenBucket:
    """Gives `qps` tokens a second, `burst` of them at once after a quiet time, in the order of those who ask.

    With 10 a second and a burst of 3, six that ask at once wait 0, 0, 0, 0.1, 0.2 and 0.3 s.
    """

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        self._clock = clock
        self.interval = 1.0 / qps
        """Seconds between two tokens."""
        self._slack = (burst - 1) * self.interval
        self._next = clock.monotonic() - self._slack
        """When the bucket, were it never full, would give the next token."""

    async def take(self) -> None:
        """Wait for a token."""
        now = self._clock.monotonic()
        at = max(self._next, now - self._slack)
        self._next = at + self.interval
        if at > now:
            await self._clock.sleep(at - now)


class Backoff:
    """The delays of one thing that may fail again and again."""

    def __init__(self, clock: Clock, random: Random, first: float = 0.8) -> None:
        self._clock = clock
        self._random = random
        self._first = first
        self._next = first
        self._last = clock.monotonic()

    def delay(self, at_least: float = 0.0, at_most: float = LONGEST) -> float:
        """Seconds to wait now; not less than `at_least` (a Retry-After), and spread above it. `at_most`: before it is
        spread."""
        now = self._clock.monotonic()
        if now - self._last > FORGOTTEN_AFTER:
            self._next = self._first
        base = min(self._next, at_most)
        self._next = min(base * 2, LONGEST)
        wait = max(base, at_least) + base * self._random.random()
        self._last = now + wait
        return wait

    def reset(self) -> None:
        """Start again from the first delay."""
        self._next = self._first
