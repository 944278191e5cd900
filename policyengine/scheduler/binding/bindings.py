"""Decisions under way to the API server: pods with a reservation whose binding's outcome is not known yet.

    PREPARING ──all prepared──> POSTED     PREPARING ──failed, refused, too late──> (forgotten, back to the queue)

    POSTED ──succeeded──> (bound)          POSTED ──failed──> (forgotten, back to the queue)
       ^  \\
       │   unknown, or a conflict after an unknown outcome
       │    \\
       └──── READING ──seen on a node──> (bound)      ──deleted──> (gone)

Rules:
1. A decision keeps the node, the policy hash and the time it was made with, whatever is loaded meanwhile.
2. While an outcome is unknown the reservation stays: an old request may still land. The pod is read until that
   tells; seen unassigned, the same binding is posted again, which either succeeds or conflicts with itself.
3. A pod whose PreBind plugins have something to do is prepared first (`preparation`, `prebind`); nothing has been
   posted for it then, so its reservation can be given up at any time.
4. A decision whose node changed so that the pod would be refused there is withdrawn: a runner that asks
   `SchedulerState.may_bind` right before it posts will not post it. One that was posted already may land: its pod
   counts on the node as long as that is so.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from math import inf

from policyengine.enum_members import direct_members
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.binding.preparation import Preparation
from policyengine.scheduler.binding.reservation import Reservation

READ_AGAIN = 1.0
READ_AGAIN_AT_MOST = 10.0
"""Seconds between two reads of one pod: doubling, from the first value to the second."""


@direct_members
class Phase(Enum):
    """What is awaited of a decision."""

    PREPARING = "preparing"
    POSTED = "posted"
    READING = "reading"


class Decision:
    """One pod's way to its node."""

    __slots__ = (
        "awaits_gang",
        "bind",
        "held",
        "is_sent",
        "number",
        "phase",
        "preparation",
        "read_at",
        "reads",
        "unknown_at",
        "unsure",
        "withdrawn",
    )

    def __init__(self, held: Reservation, bind: Bind, now: float = 0.0) -> None:
        self.held = held
        self.bind = bind
        self.number = 0
        """Never used twice."""
        self.preparation = Preparation(held.plans, now) if held.plans else None
        """What has to be done before the binding is posted."""
        self.phase = Phase.POSTED if self.preparation is None else Phase.PREPARING
        self.awaits_gang = False
        """Whether, once all is prepared, the binding is not posted before those of its gang."""
        self.is_sent = False
        """Whether the runner was told that it may post it: from then on it can land whatever is decided here."""
        self.unsure = False
        """Whether an earlier request for this binding may still land."""
        self.unknown_at = 0.0
        """When the last such request was given up, in seconds."""
        self.withdrawn = ""
        """Why the decision no longer holds; empty while it does."""
        self.reads = 0
        self.read_at: float | None = None
        """When the pod is to be read next; None while an answer is awaited, or nothing is to be read."""

    def read_later(self, now: float, at_least: float = 0.0) -> None:
        """Plan the next read, later each time, in `at_least` seconds."""
        wait = max(at_least, min(READ_AGAIN_AT_MOST, READ_AGAIN * 2.0 ** min(self.reads, 8)))
        self.phase = Phase.READING
        self.reads += 1
        self.read_at = now + wait


class Bindings:
    """The decisions under way, by pod and by node."""

    __slots__ = ("_by_node", "_by_uid", "_count", "_preparing", "_reading")

    def __init__(self) -> None:
        self._count = 0
        self._preparing: dict[str, Decision] = {}
        self._by_uid: dict[str, Decision] = {}
        self._by_node: dict[str, dict[str, Decision]] = {}
        self._reading: dict[str, Decision] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._by_uid.values())

    @property
    def are_looked_after(self) -> bool:
        """Whether the pod of one is to be read, or its preparation to be looked at, some time."""
        return bool(self._reading or self._preparing)

    def get(self, uid: str) -> Decision | None:
        """The decision about the pod, if its outcome is awaited."""
        return self._by_uid.get(uid)

    def add(self, decision: Decision) -> None:
        """A binding is being posted, or prepared."""
        bind = decision.bind
        assert bind.uid not in self._by_uid, f"a binding of `{bind.namespace}/{bind.name}` is under way already"
        self._count += 1
        decision.number = self._count
        self._by_uid[bind.uid] = decision
        if decision.phase is Phase.PREPARING:
            self._preparing[bind.uid] = decision
        self._by_node.setdefault(bind.node, {})[bind.uid] = decision

    def pop(self, uid: str) -> Decision | None:
        """The outcome is known, or does not matter any more; None when no binding of the pod is under way."""
        decision = self._by_uid.pop(uid, None)
        if decision is None:
            return None
        self._reading.pop(uid, None)
        self._preparing.pop(uid, None)
        on_node = self._by_node[decision.bind.node]
        del on_node[uid]
        if not on_node:
            del self._by_node[decision.bind.node]
        return decision

    def on(self, node: str) -> list[Decision]:
        """The decisions for this node."""
        return list(self._by_node.get(node, {}).values())

    def prepared(self, decision: Decision) -> None:
        """The binding is being posted now."""
        decision.phase = Phase.POSTED
        del self._preparing[decision.bind.uid]

    def note(self, kind: str) -> None:
        """An object of the kind changed: the pods whose preparation reads it are to be asked about again."""
        for decision in self._preparing.values():
            if decision.preparation is not None and kind in decision.preparation.kinds:
                decision.preparation.ask_again = True

    def preparations_due(self, now: float) -> list[Decision]:
        """The pods to ask about again, or whose time is up."""
        return [one for one in self._preparing.values() if one.preparation is not None and one.preparation.due() <= now]

    def read_later(self, decision: Decision, now: float, at_least: float = 0.0) -> None:
        """The outcome is unknown: look after a while, of `at_least` seconds."""
        decision.read_later(now, at_least)
        self._reading[decision.bind.uid] = decision

    def read_now(self, decision: Decision) -> None:
        """The outcome is unknown: an answer to a read is awaited."""
        decision.phase = Phase.READING
        decision.read_at = None
        self._reading[decision.bind.uid] = decision

    def post_again(self, decision: Decision) -> None:
        """The pod was seen unassigned: the same binding is being posted again."""
        decision.phase = Phase.POSTED
        decision.read_at = None
        self._reading.pop(decision.bind.uid, None)

    def due(self, now: float) -> list[Decision]:
        """The decisions whose pod is to be read now."""
        return [one for one in self._reading.values() if one.read_at is not None and one.read_at <= now]

    def next_due(self) -> float | None:
        """When a pod is to be read, or its preparation looked at, in seconds; None when none is."""
        times = [one.read_at for one in self._reading.values() if one.read_at is not None]
        times += [one.preparation.due() for one in self._preparing.values() if one.preparation is not None]
        return min((time for time in times if time < inf), default=None)
