"""How long a write takes an API server that has enough of them: what is still to be written, in seconds.

Bindings, events and conditions cost it about the same, and it does many at once. So what counts is how many it answers
in a time in which some were always under way, not how long one of them takes.
"""

from __future__ import annotations

from policyengine.clock import Clock

WINDOW = 0.25
"""Seconds over which answers are counted."""
GUESS = 0.0001
"""Seconds of a write until a first window is over."""
_WEIGHT = 1 / 4


class WritePace:
    """Counts writes under way and those answered."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.under_way = 0
        self._answered = 0
        """Since `_since`."""
        self._since = 0.0
        self._is_known = False
        self.seconds = GUESS
        """Of one write."""

    def began(self, count: int = 1) -> None:
        """So many more are under way."""
        if not self.under_way:
            self._begin_window()
        self.under_way += count

    def ended(self, count: int = 1, *, answered: bool = True) -> None:
        """So many are not any more. Where they were not answered, the time was not spent on writing."""
        self.under_way -= count
        if not answered:
            self._begin_window()
            return
        self._answered += count
        spent = self._clock.monotonic() - self._since
        if spent >= WINDOW:
            each = spent / self._answered
            self.seconds += (each - self.seconds) * (_WEIGHT if self._is_known else 1.0)
            self._is_known = True
            self._begin_window()

    def _begin_window(self) -> None:
        self._since, self._answered = self._clock.monotonic(), 0
