"""How often Python looks for garbage in cycles: whoever keeps much, and makes few cycles, has it look seldom."""

from __future__ import annotations

import gc
from typing import Final

NEW_OBJECTS: Final = 50_000
"""Containers made and not freed, after which the young ones are looked through; Python's own figure is 700."""


def collect_seldom() -> None:
    """From now on; it is the whole process that does."""
    _, *older = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *older)
