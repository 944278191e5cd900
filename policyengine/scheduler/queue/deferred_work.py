"""Whether a message has left something to see to before it is done: a gang that changed, a pod that was kept outside
its queue, a pod whose coming to the gate is to be logged.

Rule: whoever notes such a thing for later says so here; so a message that left nothing, as most do, asks no queue.
"""

from __future__ import annotations


class Aftermath:
    """One for all queues of a core."""

    __slots__ = ("is_due",)

    def __init__(self) -> None:
        self.is_due = False
