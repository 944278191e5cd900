"""How many requests a second: a token bucket, as client-go's flow control has it (`clientConnection.qps` and `burst`).

Leases and reviews take no token: a lease must not wait behind bindings.
"""

from __future__ import annotations

from policyengine.clock import Clock


class TokenBucket:
    """Gives `qps` tokens a second, `burst` of them at once after a quiet time, in the order of those who ask.

    With 10 a second and a burst of 3, six that ask at once wait 0, 0, 0, 0.1, 0.2 and 0.3 s.
    """

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        self._clock = clock
        self._interval = 1.0 / qps
        self._slack = (burst - 1) * self._interval
        self._next = clock.monotonic() - self._slack
        """When the bucket, were it never full, would give the next token."""

    async def take(self) -> None:
        """Wait for a token."""
        now = self._clock.monotonic()
        at = max(self._next, now - self._slack)
        self._next = at + self._interval
        if at > now:
            await self._clock.sleep(at - now)
