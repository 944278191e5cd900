"""A clock whose wall time may be set wrong; what is slept and measured stays true."""

from policyengine.clock import Clock


class OffsetClock:
    """Another clock, `offset` seconds ahead of it (behind, where negative)."""

    def __init__(self, inner: Clock, offset: float = 0.0) -> None:
        self._inner = inner
        self.offset = offset

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch, off by `offset`."""
        return self._inner.now() + self.offset

    def monotonic(self) -> float:
        """Seconds on the inner clock."""
        return self._inner.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await self._inner.sleep(seconds)
