"""Where measurements come from: what a source gives, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policyengine.server.annotator.nodes import MeasuredNode
from policyengine.server.annotator.statistics import Sample


class SourceUnreachable(Exception):
    """Nobody answers; one sentence."""


class QueryRefused(Exception):
    """The source answers that it cannot; one sentence with what it says."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Samples by node, ascending in time: free cores, free bytes, congestion. What is not measured is absent."""

    cpu: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    memory: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    congestion: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """What of the answer could not be used, a sentence each."""


class Source(Protocol):
    """Something that measures nodes."""

    async def measure(self, now: float, nodes: Mapping[str, MeasuredNode]) -> Measured:
        """The samples of the window that ends now. Raises `SourceUnreachable`, `QueryRefused`."""

    async def close(self) -> None:
        """Give connections up."""
