"""A scheduler tried out on a cluster of dicts and on virtual time: what tests of policies and simulations drive.

    trial = Trial([profile], now=1_767_600_000.0)
    trial.see(NodeObserved(node), PodObserved(pod))
    trial.settle()
    trial.node_of("pod-uid")            # "a"
    trial.advance(60.0)

Rules:
1. Everything the scheduler asks for is answered at once: a `Bind` by its outcome and the bound pod, an eviction by
   the pod's deletion (or, where victims have their grace, by its beginning), a patch by the patched object. Nobody else
   lives in the cluster: no kubelet starts pods, no controller makes volumes. A simulation plays those, by messages of
   its own (`see`).
2. Time passes only in `advance`, from one thing that is due to the next.
3. Nothing is left to chance: the same messages give the same trial.
4. `limit` bounds the work: the messages handled in all. A trial that takes more raises `TrialTooLong`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from policyengine.framework.profile import Profile
from policyengine.scheduler.actions import (
    Action,
    Bind,
    DeleteVictim,
    Log,
    PatchObject,
    PatchPodCondition,
    ReadPod,
    RecordEvent,
)
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    CacheSynced,
    CyclesRequested,
    DrivenCore,
    Message,
    Tick,
)
from policyengine.scheduler.pod_timeline import TimelineEntry
from policyengine.scheduler.state import SchedulerState
from policyengine.trials.trial_cluster import TrialCluster

LIMIT = 1_000_000
"""Messages that one trial may take unless told otherwise."""

Driven = Callable[[SchedulerState], DrivenCore]
"""Gives what is driven in a core's place."""


def bare(state: SchedulerState) -> DrivenCore:
    """The core itself."""
    return state


class TrialTooLong(Exception):
    """The trial took more messages than its limit: something never comes to rest."""


class Trial:
    """One run. Read `cluster` for what is, `binds`, `events`, `conditions` and `history` for what happened."""

    def __init__(
        self,
        profiles: Iterable[Profile],
        now: float,
        *,
        limit: int = LIMIT,
        listed: Iterable[tuple[float, Message]] = (),
        victims_linger: bool = False,
        tried: Callable[[Sequence[str]], None] | None = None,
        driven: Driven = bare,
    ) -> None:
        """
        Arguments:
            now: seconds since the epoch.
            limit: the messages that may be handled.
            listed: what was there before, and when it came: (seconds, message), in order of time.
            victims_linger: they have their grace, and who plays the kubelet ends them.
            tried: called after each cycle with the UIDs of the pods it tried, in order, before anything the cycle asked
                for is carried out.
            driven: gives what is driven in the core's place: the core, with somebody who looks on (`recording`).
        """
        self.now = now
        self.cluster = TrialCluster()
        self.state = SchedulerState(profiles)
        self._core = driven(self.state)
        self.binds: list[tuple[float, Bind]] = []
        """Bindings that were made, in order: (seconds, binding)."""
        self.events: list[tuple[float, RecordEvent]] = []
        """Events that were recorded, in order."""
        self.logged: list[tuple[float, Log]] = []
        """Lines that the policies' `on … log` said, in order."""
        self.evictions: list[tuple[float, DeleteVictim]] = []
        """Victims that were deleted, in order."""
        self.conditions: dict[str, PatchPodCondition] = {}
        """UID -> what was last written into the pod's PodScheduled condition; a bound pod has none."""
        self.history: list[tuple[str, TimelineEntry]] = []
        """(UID, line) of all pods' timelines, in the order they happened."""
        self.popped: list[str] = []
        """UIDs in the order in which the queue gave them out, once an attempt."""
        self._tried = tried
        self._victims_linger = victims_linger
        self._left = limit
        self._limit = limit
        self._asked: deque[Action] = deque()
        self.state.listen(self._told)
        for self.now, message in listed:
            self.see(message)
        self.now = now
        self._send(CacheSynced())

    # --- what one does with it ------------------------------------------------------------------------

    def see(self, *messages: Message) -> None:
        """Something happens in the cluster now; objects get the next version. No cycle runs yet."""
        for message in messages:
            self._send(self.cluster.apply(message))

    def settle(self) -> None:
        """Run cycles, and answer what they ask for, until nothing moves. No time passes.

        Raises:
            TrialTooLong: the limit is used up.
        """
        while True:
            self._answer()
            due = self.state.next_wakeup(self.now)
            if due is not None and due <= self.now and self._moves(Tick()):
                continue
            if not self.state.ready or not self._cycle():
                return

    def advance(self, seconds: float) -> None:
        """Let time pass, settling at every moment at which something is due.

        Raises:
            TrialTooLong: the limit is used up.
        """
        self.advance_to(self.now + seconds)

    def advance_to(self, end: float, *messages: Message) -> None:
        """The same, until a moment in seconds since the epoch, which is not past. `messages`: what happens at that
        moment, and is acted upon before anything that is due just then.

        Raises:
            TrialTooLong: the limit is used up.
        """
        self.settle()
        while (due := self.next_due()) is not None and due < end:
            self._arrive(due)
        self.now = end
        self.see(*messages)
        self._answer()
        while messages and self.state.ready and self._cycle():
            self._answer()
        self._arrive(end)

    def next_due(self) -> float | None:
        """The next moment at which something is due; one that has come and changed nothing does not count."""
        wakeup = self.state.next_wakeup()
        return wakeup if wakeup is not None and wakeup > self.now else None

    # --- what became of pods --------------------------------------------------------------------------

    def node_of(self, uid: str) -> str:
        """The node the pod is bound to; "" while it is pending, or gone."""
        pod = self.cluster.pods.get(uid)
        return "" if pod is None else pod.spec.node_name

    def refusal(self, uid: str) -> str:
        """What the pod's condition says of why it is pending; "" where nothing is said, or it is bound."""
        said = self.conditions.get(uid)
        return "" if said is None else said.message

    def timeline(self, uid: str) -> list[TimelineEntry]:
        """What happened to the pod, oldest line first; the whole of it."""
        return [line for of, line in self.history if of == uid]

    # --- details --------------------------------------------------------------------------------------

    def _arrive(self, moment: float) -> None:
        self.now = moment
        self._send(Tick())
        self.settle()

    def _cycle(self) -> bool:
        """Whether there was something to try."""
        before, told = len(self.popped), len(self.history)
        self._send(CyclesRequested(1))
        if self._tried is not None and len(self.popped) > before:
            self._tried(self.popped[before:])
        return len(self.history) > told

    def _moves(self, message: Message) -> bool:
        """Whether the message leads to anything."""
        told = len(self.history)
        before = self.state.next_wakeup(self.now)
        self._send(message)
        return bool(self._asked) or len(self.history) > told or self.state.next_wakeup(self.now) != before

    def _send(self, message: Message) -> None:
        if self._left <= 0:
            raise TrialTooLong(f"the trial took more than {self._limit} steps and is not at rest")
        self._left -= 1
        self._asked += self._core.handle(message, self.now)

    def _told(self, uid: str, line: TimelineEntry) -> None:
        self.history.append((uid, line))
        if line.what == "attempted":
            self.popped.append(uid)

    def _answer(self) -> None:
        while self._asked:
            for message in self._carried_out(self._asked.popleft()):
                self._send(message)

    def _carried_out(self, action: Action) -> Sequence[Message]:
        match action:
            case Bind():
                return self._bind(action)
            case PatchPodCondition():
                if action.reason:
                    self.conditions[action.uid] = action
                return self.cluster.set_condition(action, self.now)
            case DeleteVictim():
                self.evictions.append((self.now, action))
                if self._victims_linger:
                    return self.cluster.terminate(action, self.now)
                return self.cluster.delete(action, self.now)
            case PatchObject():
                return self.cluster.patch(action)
            case ReadPod():
                return self.cluster.read(action)
            case RecordEvent():
                self.events.append((self.now, action))
            case Log():
                self.logged.append((self.now, action))
        return []

    def _bind(self, asked: Bind) -> Sequence[Message]:
        if not self._core.may_bind(asked.uid):
            return [BindFailed(asked.uid, BindFailure.WITHDRAWN, "not posted")]
        answers = self.cluster.bind(asked, self.now)
        if not isinstance(answers[0], BindFailed):
            self.binds.append((self.now, asked))
            self.conditions.pop(asked.uid, None)
        return answers
