"""Sizes that bound what a scheduler holds and does at once, and how long it waits at the end."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Counts, and seconds where the name says `deadline`."""

    cycles: int = 16
    """Cycles between two turns of the event loop."""
    bindings: int = 512
    """Bindings posted and not answered, above which no cycle runs."""
    writes: int = 96
    """Requests under way at once."""
    questions: int = 256
    """Pods that extenders are asked about, above which no cycle runs."""
    queued: int = 2048
    """Messages not handled yet, above which watches wait."""
    messages: int = 256
    """Messages handled between two turns of the event loop."""
    bindings_deadline: float = 10.0
    flush_deadline: float = 10.0
