"""The time the core is given: the wall clock's, but it never jumps.

A backoff or a gang's time-out must not end because someone set the clock. So time advances with the monotonic
clock, and approaches a wall clock that was set by one second in ten.
"""

from __future__ import annotations

from policyengine.clock import Clock
from policyengine.scheduler.binding.server_time import SLEW


class SteadyClock:
    """Epoch seconds that never go back and never leap."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = clock.now()
        self._read_at = clock.monotonic()

    def now(self) -> float:
        """Epoch seconds."""
        monotonic = self._clock.monotonic()
        passed = max(0.0, monotonic - self._read_at)
        self._read_at = monotonic
        error = self._clock.now() - (self._now + passed)
        correction = max(-SLEW * passed, min(SLEW * passed, error))
        self._now += passed + correction
        return self._now
