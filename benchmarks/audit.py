"""Is what was decided right? A sample of decisions is made again by an evaluator that has cached nothing.

Speed must not change an answer: the chosen node is feasible, beside the pods nominated to it too, its total is the
best there is, and of equals it is the one the ring of hashes names. A pod that is nominated to a node takes that, where
it can. A difference is a bug and raises.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy

import numpy as np

from policyengine.cluster.pod_info import PodState
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_with_nominated
from policyengine.scheduler.actions import Action, Bind
from policyengine.scheduler.messages import CyclesRequested, Message
from policyengine.scheduler.pod_timeline import TimelineEntry
from policyengine.scheduler.state import SchedulerState


class WrongDecision(AssertionError):
    """A decision differs from a fresh evaluation of the same cluster."""


class AuditedCore:
    """A `SchedulerState`, as a runner sees it, of which every `every`-th binding is checked at once."""

    def __init__(self, state: SchedulerState, every: int) -> None:
        self.state = state
        self._every = max(1, every)
        self._bound = 0
        self._due = 1
        self.checks = 0
        self.cpu_ns = 0
        """CPU of this process that went into checks: no part of what is measured."""

    def handle(self, message: Message, now: float) -> list[Action]:
        """As `SchedulerState.handle`; a cycle that is due for a check runs by itself, so that nothing follows it."""
        if not isinstance(message, CyclesRequested) or message.limit < 1:
            return self.state.handle(message, now)
        until_due = self._due - self._bound - 1
        if until_due > 0:
            actions = self.state.handle(CyclesRequested(min(message.limit, until_due)), now)
            self._bound += sum(isinstance(action, Bind) for action in actions)
            return actions
        decided: list[str] = []

        def hear(uid: str, line: TimelineEntry) -> None:
            if line.what == "reserved":
                decided.append(uid)

        self.state.listen(hear)
        actions = self.state.handle(CyclesRequested(1), now)
        self.state.listen(None)
        binds = {action.uid: action for action in actions if isinstance(action, Bind)}
        self._bound += len(binds)
        # A gang's members are bound in another order than they were decided in, and some in a later cycle.
        if decided and self._bound >= self._due and binds.keys() >= set(decided):
            self._due = self._bound + self._every
            first, *later = (binds[uid] for uid in decided)
            self._check(first, later)
        return actions

    def _check(self, bind: Bind, later: Sequence[Bind]) -> None:
        started = time.thread_time_ns()
        check(self.state, bind, later)
        self.checks += 1
        self.cpu_ns += time.thread_time_ns() - started

    def next_wakeup(self, now: float = 0.0) -> float | None:
        """As `SchedulerState.next_wakeup`."""
        return self.state.next_wakeup(now)

    @property
    def ready(self) -> bool:
        """As `SchedulerState.ready`."""
        return self.state.ready

    @property
    def has_decided(self) -> bool:
        """As `SchedulerState.has_decided`."""
        return self.state.has_decided

    def may_bind(self, uid: str) -> bool:
        """As `SchedulerState.may_bind`."""
        return self.state.may_bind(uid)


def check(state: SchedulerState, bind: Bind, later: Sequence[Bind] = ()) -> None:
    """Decide the pod of a `Bind` just given once more, as if it had not been placed. Raises `WrongDecision`.

    `later`: those of the same cycle decided after it, a gang's; they had no part in the decision either.
    """
    view = state.view
    # The view's own entry names the node by now, and NodeName would let no other pass: a pending copy is evaluated.
    pod = copy(view.pods[bind.uid])
    pod.node_name, pod.state = "", PodState.PENDING
    profile = next(one for one in state.profiles if one.scheduler_name == pod.scheduler_name)
    with view.hypothetically(remove=[bind.uid, *(one.uid for one in later)]) as snapshot:
        fresh = Evaluator(profile)
        diagnosis = filter_with_nominated(fresh, view, pod)
        row_of = snapshot.nodes.row_of
        row = row_of[bind.node]
        if row not in diagnosis.feasible:
            raise WrongDecision(f"`{pod.key}` is on `{bind.node}`, where a fresh evaluation refuses it")
        if row_of.get(pod.nominated_node_name, -1) in diagnosis.feasible:
            if pod.nominated_node_name != bind.node:
                raise WrongDecision(f"`{pod.key}` is on `{bind.node}`; room was made on `{pod.nominated_node_name}`")
            return
        node_scores = fresh.score(pod, snapshot, diagnosis)
        total = int(node_scores.total[int(np.searchsorted(diagnosis.feasible, row))])
        best = int(node_scores.total.max())
        if total != best:
            raise WrongDecision(f"`{pod.key}` is on `{bind.node}` with {total} points; another node has {best}")
        named = snapshot.nodes.names[node_scores.best(pod.uid)]
        if named != bind.node:
            raise WrongDecision(f"`{pod.key}` is on `{bind.node}`; of the best nodes its hash names `{named}`")
