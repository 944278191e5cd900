"""The core as something that drives it sees it: `state.SchedulerState`, or somebody who looks on in its place."""

from __future__ import annotations

from typing import Protocol

from policyengine.scheduler.actions import Action
from policyengine.scheduler.messages import Message


class DrivenCore(Protocol):
    """What is driven: `scheduler.state.SchedulerState`, as far as a runner sees it."""

    def handle(self, message: Message, now: float) -> list[Action]:
        """Take one message in; say what to do."""

    def next_wakeup(self, now: float = 0.0) -> float | None:
        """When the core wants a `Tick`, on the clock `handle` is given, but not before `now`; None for never."""

    @property
    def ready(self) -> bool:
        """Whether a cycle would find a pod to place."""

    @property
    def has_decided(self) -> bool:
        """Whether the last cycle's decision is to be compared, before anything else is handled."""

    def may_bind(self, uid: str) -> bool:
        """Whether a `Bind` still stands, asked right before it is posted."""
