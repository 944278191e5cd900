"""Python's collector of reference cycles, in a process that holds a cluster.

What a scheduler keeps (nodes, pods, columns) is reached from its tables and freed by reference counts; what it makes
for a decision or a request is gone a moment later. Looking through all of it for cycles again and again finds next to
nothing. So it looks seldom, and never again at what the first lists brought.
"""

from __future__ import annotations

import asyncio
import gc

NEW_OBJECTS = 50_000
"""Containers made and not freed, after which the young ones are looked through; Python's own figure is 700."""


async def keep_quiet(synced: asyncio.Event) -> None:
    """Look seldom from now on, and leave out all there is once `synced` is set. It is the whole process that does."""
    _, *older = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *older)
    await synced.wait()
    gc.freeze()
