"""To wait for what another process will say: it is asked again and again until it does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")
PAUSE = 0.05
PATIENT = 120.0
"""Seconds that anything may take on a machine with much else to do; none of them is waited for in vain."""


def asked_until(holds: Callable[[Answer], bool], ask: Callable[[], Answer]) -> Answer:
    """The first answer for which it holds."""
    ends = time.monotonic() + PATIENT
    while not holds(answer := ask()):
        assert time.monotonic() < ends, answer
        time.sleep(PAUSE)
    return answer
