"""Pods that are of no use without enough of each other, as far as the cluster view needs to know."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol


class Team(NamedTuple):
    """The pods of one gang that have a node."""

    placed: Collection[str]
    """UIDs."""
    minimum: int
    """With fewer than this they are of no use."""


class Teams(Protocol):
    """Answered by whoever knows the gangs."""

    def of(self, uid: str) -> Team | None:
        """The pod's team; None for a pod that has none."""

    def placed(self) -> Iterable[str]:
        """UIDs of all pods that have a node and a team."""


class NoTeams:
    """Everybody stands alone."""

    def of(self, uid: str) -> None:
        """Nobody has a team."""

    def placed(self) -> tuple[str, ...]:
        """Nobody has a team."""
        return ()
