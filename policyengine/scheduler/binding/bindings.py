"""Decisions under way to the API server: pods with a reservation whose binding's result is not known yet.

    PREPARING ──all prepared──> POSTED     PREPARING ──failed, refused, too late──> (forgotten, back to the queue)

    POSTED ──succeeded──> (bound)          POSTED ──failed──> (forgotten, back to the queue)
       ^  \\
       │   unknown, or a conflict after an unknown result
       │    \\
       └──── READING ──seen on a node──> (bound)      ──deleted──> (gone)

Rules:
1. A decision keeps the node, the policy hash and the time it was made with, whatever is loaded meanwhile.
2. While a result is unknown the reservation stays: an old request may still land. The pod is read until that tells;
   seen unassigned, the same binding is posted again, which either succeeds or conflicts with itself.
3. A pod whose PreBind plugins have something to do is prepared first (`preparation`, `prebind`); nothing has been
   posted for it then, so its reservation can be given up at any time.
4. A decision whose node changed so that the pod would be refused there is withdrawn: a runner that asks
   `SchedulerState.may_bind` right before it posts will not post it. A binding that was posted already may land: its
   pod counts on the node until the result is known.
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

    def __init__(self, held: Reservation, bind: Bind, now: float = 0.0) -> None:
        self.held = held
        self.bind = bind
        self.number = 0
        """Never used twice."""
        self.preparation = Preparation(held.plans, now) if held.plans else None
        """What has to be done before the binding is posted."""
        self.phase = Phase.POSTED if self.preparation is None else Phase.PREPARING
        self.awaits_gang = False
        """Whether, once all is prepared, the binding is posted only together with those of its gang."""
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


class Bindings:
    """The decisions under way, by pod, node and phase."""

    def __init__(self) -> None:
        self._count = 0
        self._by_uid: dict[str, Decision] = {}
        self._by_node: dict[str, dict[str, Decision]] = {}
        self._by_phase: dict[Phase, dict[str, Decision]] = {phase: {} for phase in Phase}

    def __len__(self) -> int:
        return len(self._by_uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._by_uid.values())

    def get(self, uid: str) -> Decision | None:
        """The decision about the pod, if its result is awaited."""
        return self._by_uid.get(uid)

    def on(self, node: str) -> list[Decision]:
        """The decisions for this node."""
        return list(self._by_node.get(node, {}).values())

    def add(self, decision: Decision) -> None:
        """A binding is being posted, or prepared."""
        bind = decision.bind
        assert bind.uid not in self._by_uid, f"a binding of `{bind.namespace}/{bind.name}` is under way already"
        self._count += 1
        decision.number = self._count
        self._by_uid[bind.uid] = decision
        self._by_phase[decision.phase][bind.uid] = decision
        self._by_node.setdefault(bind.node, {})[bind.uid] = decision

    def pop(self, uid: str) -> Decision | None:
        """The result is known, or does not matter any more; None if no binding of the pod is under way."""
        decision = self._by_uid.pop(uid, None)
        if decision is None:
            return None
        del self._by_phase[decision.phase][uid]
        on_node = self._by_node[decision.bind.node]
        del on_node[uid]
        if not on_node:
            del self._by_node[decision.bind.node]
        return decision

    def post(self, decision: Decision) -> None:
        """The binding is being posted: all is prepared, or the pod was seen unassigned and it is posted again."""
        decision.read_at = None
        self._to(decision, Phase.POSTED)

    def read(self, decision: Decision) -> None:
        """The result is unknown: the answer to a read is awaited."""
        decision.read_at = None
        self._to(decision, Phase.READING)

    def read_later(self, decision: Decision, now: float, at_least: float = 0.0) -> None:
        """The result is unknown: plan the next read, later each time, in `at_least` seconds."""
        wait = max(at_least, min(READ_AGAIN_AT_MOST, READ_AGAIN * 2.0 ** min(decision.reads, 8)))
        decision.reads += 1
        decision.read_at = now + wait
        self._to(decision, Phase.READING)

    def note(self, kind: str) -> None:
        """An object of the kind changed: the pods whose preparation reads it are to be asked about again."""
        for preparation in self._preparations():
            preparation.ask_again |= kind in preparation.kinds

    def preparations_due(self, now: float) -> list[Decision]:
        """The pods to ask about again, or whose time is up."""
        preparing = self._by_phase[Phase.PREPARING].values()
        return [one for one in preparing if one.preparation is not None and one.preparation.due() <= now]

    def reads_due(self, now: float) -> list[Decision]:
        """The decisions whose pod is to be read now."""
        reading = self._by_phase[Phase.READING].values()
        return [one for one in reading if one.read_at is not None and one.read_at <= now]

    def next_due(self) -> float | None:
        """When a pod is to be read, or its preparation looked at, in seconds; None if none is."""
        times = [one.read_at for one in self._by_phase[Phase.READING].values() if one.read_at is not None]
        times += [preparation.due() for preparation in self._preparations()]
        return min((time for time in times if time < inf), default=None)

    def _preparations(self) -> Iterator[Preparation]:
        preparing = self._by_phase[Phase.PREPARING].values()
        return (one.preparation for one in preparing if one.preparation is not None)

    def _to(self, decision: Decision, phase: Phase) -> None:
        del self._by_phase[decision.phase][decision.bind.uid]
        decision.phase = phase
        self._by_phase[phase][decision.bind.uid] = decision
