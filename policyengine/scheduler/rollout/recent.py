"""What was found of the pods of late: one value a pod, the last, for as long as it counts."""

from __future__ import annotations

from collections import OrderedDict

MOST = 10_000
"""Pods that are remembered; older ones are forgotten before their time."""


class Recent:
    """Values by pod, those of the last `window` seconds, and their sum."""

    __slots__ = ("_sum", "_values", "_window")

    def __init__(self, window: float) -> None:
        self._window = window
        self._values: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._sum = 0.0

    def note(self, uid: str, value: float, now: float) -> None:
        """This is what is true of the pod now."""
        _, before = self._values.pop(uid, (now, 0.0))
        self._values[uid] = (now, value)
        self._sum += value - before
        if len(self._values) > MOST:
            self._drop_oldest()

    def mean(self, now: float, least: int) -> float | None:
        """The average over the pods; None where there are fewer than `least`."""
        while self._values and next(iter(self._values.values()))[0] < now - self._window:
            self._drop_oldest()
        return None if len(self._values) < max(1, least) else self._sum / len(self._values)

    def _drop_oldest(self) -> None:
        _, (_, value) = self._values.popitem(last=False)
        self._sum = self._sum - value if self._values else 0.0
