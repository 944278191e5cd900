"""Pods that have victims on their way out: until these are seen leaving, a pod preempts nobody else.

kube-scheduler keeps such a pod out of its queue (DefaultPreemption's PreEnqueue); here it may be tried, and is bound
where it fits, but room is not made for it twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyengine.cluster.view import ClusterView


@dataclass(slots=True)
class Eviction:
    """One pod's victims."""

    victims: frozenset[str]
    """UIDs of those that were to be deleted."""
    awaited: set[str] = field(default_factory=set)
    """UIDs of those whose deletion the server has not answered for."""
    not_before: float = 0.0
    """The earliest time at which the server wants to hear of it again."""
    has_failed: bool = False
    """Whether one of them could not be deleted."""


class Evictions:
    """By preemptor's UID."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Eviction] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def begin(self, preemptor: str, victims: list[str]) -> None:
        """The victims are being deleted."""
        self._by_uid[preemptor] = Eviction(frozenset(victims), set(victims))

    def is_running(self, preemptor: str, view: ClusterView) -> bool:
        """Whether one of the pod's victims is not seen leaving yet."""
        eviction = self._by_uid.get(preemptor)
        if eviction is None:
            return False
        pods = view.pods
        if eviction.awaited or any(uid in pods and not pods[uid].deleting for uid in eviction.victims):
            return True
        del self._by_uid[preemptor]
        return False

    def answered(self, preemptor: str, victim: str) -> None:
        """The victim was deleted, or is known to be gone."""
        eviction = self._by_uid.get(preemptor)
        if eviction is not None:
            eviction.awaited.discard(victim)

    def failed(self, preemptor: str, victim: str, not_before: float) -> None:
        """The victim was not deleted."""
        eviction = self._by_uid.get(preemptor)
        if eviction is not None:
            eviction.awaited.discard(victim)
            eviction.has_failed = True
            eviction.not_before = max(eviction.not_before, not_before)

    def take_failed(self, preemptor: str) -> Eviction | None:
        """The pod's eviction, once all is answered and something failed: it is over then, and the pod may try again."""
        eviction = self._by_uid.get(preemptor)
        if eviction is None or eviction.awaited or not eviction.has_failed:
            return None
        return self._by_uid.pop(preemptor)

    def forget(self, preemptor: str) -> None:
        """The pod waits no more."""
        self._by_uid.pop(preemptor, None)
