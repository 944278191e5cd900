"""The clock and sleep, as a protocol: everything outside the pure core gets its time from here.

The scheduler core (`language` to `scheduler`) never reads a clock; it is handed `now`. `kube`, `simulator`
and `server` take a `Clock`, so that the same code runs on wall time and on a seeded loop's virtual time.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds on the machine's monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        import asyncio  # commands that only ask for the time do without it

        await asyncio.sleep(seconds)


def micro_time(seconds: float) -> str:
    """metav1.MicroTime of seconds since the epoch: RFC 3339 in UTC with six decimals."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
