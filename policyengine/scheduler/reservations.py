"""Pods with a reservation: a node's room is taken for them until they are bound, or it is given back.

    reserved ──Permit says Wait──> waiting ──let go──> PREPARING (if PreBind plugins have something to do)
                                                         └──all prepared──> POSTED

    POSTED ──succeeded──> (bound)          POSTED ──failed──> (forgotten, back to the queue)
       ^  \\
       │   unknown, or a conflict after an unknown result
       │    \\
       └──── READING ──seen on a node──> (bound)      ──deleted──> (gone)

Rules of waiting pods (kube-scheduler's framework/runtime/waiting_pods_map.go, v1.36):
1. A waiting pod keeps its reservation and counts as in flight.
2. At the earliest time-out among the plugins that said Wait it is refused by that plugin.
3. An event that one of these plugins registered has all Permit plugins asked again; so has the passing of a minute, if
   one registered for that, and the time that one of them named.
4. A pod that may be bound at the moment at which its time is up is bound, if it was to be asked at that moment.
5. A gang member that all plugins let go waits for the others, at most for the gang's timeout.

Rules of decisions:
6. A decision keeps the node, the policy hash and the time it was made with, whatever is loaded meanwhile.
7. Nothing is posted for a pod that is being prepared, so its reservation can be given up at any time.
8. While a result is unknown the reservation stays: an old request may still land. The pod is read until that tells;
   seen unassigned, the same binding is posted again, which either succeeds or conflicts with itself.
9. A decision whose node changed so that the pod would be refused there is withdrawn: a runner that asks
   `SchedulerState.may_bind` right before it posts will not post it. A binding that was posted already may land: its
   pod counts on the node until the result is known.

Example: at 100 s plugin A says Wait for 60 s, plugin B for 20 s. At 120 s the pod is refused by B, unless an event
that A or B registered has had both asked again before, and both let it go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from typing import Any

from policyengine.cluster.view import ClusterView
from policyengine.enum_members import direct_members
from policyengine.framework.events import ClusterEvent, ClusterEventWithHint
from policyengine.framework.reservation import ObjectPatch, Plan, PreBindPlugin
from policyengine.framework.scoring import Choice
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.profiles import ProfileRuntime, ServedProfile
from policyengine.scheduler.queue.queued_pods import QueuedPod
from policyengine.scheduler.queue.queueing_hints import wakes

READ_AGAIN = 1.0
READ_AGAIN_AT_MOST = 10.0
"""Seconds between two reads of one pod: doubling, from the first value to the second."""


@dataclass(slots=True, eq=False)
class Reservation:
    """What one decision holds until it is bound or given up."""

    queued: QueuedPod
    served: ServedProfile
    choice: Choice
    runtime: ProfileRuntime
    """The policy that decided; a policy loaded meanwhile has no part in it."""
    since: float
    """When the decision was made, in seconds."""
    number: int = 0
    """Never used twice; later reservations have larger ones."""
    plans: list[tuple[PreBindPlugin, Plan]] = field(default_factory=list)
    """What the PreBind plugins have to do first; what they assume is assumed in the view."""
    made: list[ObjectPatch] = field(default_factory=list)
    """What was written for the pod: what says how it is taken back goes with the reservation."""
    node: str = field(init=False)

    def __post_init__(self) -> None:
        self.node = self.choice.node


@dataclass(slots=True, eq=False)
class WaitingPod:
    """A pod that waits at Permit."""

    held: Reservation
    plugin: str
    """Whose time-out comes first."""
    events: tuple[ClusterEventWithHint, ...]
    """What the plugins that said Wait registered for."""
    deadline: float
    """Seconds."""
    seen: int
    """The number of the last reservation when the plugins said so."""
    ask_at: float = inf
    """When to ask again though nothing happens, in seconds."""
    ask_again: bool = False
    is_permitted: bool = False
    """Whether every plugin has let it go, and only its gang is awaited."""
    kept_by: frozenset[str] = frozenset()
    """The plugins that said Wait, where the gang's time-out comes before theirs: what they registered for helps it."""

    def is_to_be_asked(self, now: float) -> bool:
        """Whether the plugins may say something else by now."""
        return self.ask_again or self.ask_at <= now


class WaitingPods(dict[str, WaitingPod]):
    """The pods that wait at Permit, by UID."""

    def note(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Something happened: the pods whose plugins registered for it are to be asked again."""
        for waiting in self.values():
            hints = tuple(one.hint for one in waiting.events if one.event.matches(event))
            waiting.ask_again |= wakes(waiting.plugin, hints, waiting.held.queued, old, new) is not None

    def due(self, now: float) -> list[WaitingPod]:
        """The pods to ask again, or whose time is up."""
        return [one for one in self.values() if one.is_to_be_asked(now) or one.deadline <= now]

    def times(self) -> Iterator[float]:
        """When each of them is to be asked again, or its time is up, in seconds."""
        return (0.0 if one.ask_again else min(one.deadline, one.ask_at) for one in self.values())


class Step:
    """One PreBind plugin's part of what a placed pod waits for: the patches of its plan, then its word.

    The patches of a plan are made one after the other; the plans of several plugins go on side by side.
    """

    def __init__(self, plugin: PreBindPlugin, plan: Plan, now: float) -> None:
        self.plugin = plugin
        self.plan = plan
        self.deadline = now + plan.timeout
        """Seconds."""
        self.made = 0
        """Patches that the server has taken."""
        self.is_done = False
        """Whether the plugin has said that all is prepared; it is not asked again."""
        self.is_announced = False
        """Whether the pod's owner was told what is waited for."""
        self._versions: dict[tuple[str, str], tuple[str, str]] = {}
        """(kind, key) -> the version before the first patch of it, and after the last."""

    def next_patch(self) -> ObjectPatch | None:
        """The patch to be made now; None when all are made."""
        if self.made == len(self.plan.patches):
            return None
        patch = self.plan.patches[self.made]
        before = self._versions.get((patch.kind, patch.key))
        return patch if before is None else replace(patch, resource_version=before[1])

    def patched(self, version: str) -> None:
        """The server has taken the patch; the object's version is now this one."""
        patch = self.plan.patches[self.made]
        first = self._versions.get((patch.kind, patch.key), (patch.resource_version, ""))[0]
        self._versions[patch.kind, patch.key] = (first, version)
        self.made += 1

    def has_arrived(self, view: ClusterView) -> bool:
        """Whether all patches are made, and seen: before that the plugin would see the past. An object that is gone has
        been seen as new as it gets."""
        if self.made < len(self.plan.patches):
            return False
        for (kind, key), (before, after) in self._versions.items():
            item = view.objects_of(kind).get(key)
            if item is not None and _is_older(item.metadata.resource_version, before, after):
                return False
        return True


@direct_members
class Phase(Enum):
    """What is awaited of a decision."""

    PREPARING = "preparing"
    POSTED = "posted"
    READING = "reading"


@dataclass(eq=False)
class Decision:
    """One pod's way to its node."""

    held: Reservation
    bind: Bind
    number: int = 0
    """Never used twice."""
    steps: tuple[Step, ...] = ()
    """What has to be done before the binding is posted, in the order of the profile's PreBind plugins."""
    phase: Phase = Phase.POSTED
    ask_again: bool = False
    """Whether an object that a step reads has changed."""
    awaits_gang: bool = False
    """Whether, once all is prepared, the binding is posted only together with those of its gang."""
    is_sent: bool = False
    """Whether the runner was told that it may post it: from then on it can land whatever is decided here."""
    unsure: bool = False
    """Whether an earlier request for this binding may still land."""
    unknown_at: float = 0.0
    """When the last such request was given up, in seconds."""
    withdrawn: str = ""
    """Why the decision no longer holds; empty while it does."""
    reads: int = 0
    read_at: float | None = None
    """When the pod is to be read next; None while an answer is awaited, or nothing is to be read."""

    @property
    def is_prepared(self) -> bool:
        """Whether every plugin has said that all is prepared."""
        return all(step.is_done for step in self.steps)

    def open_steps(self) -> list[Step]:
        """The steps that are not done."""
        return [step for step in self.steps if not step.is_done]

    def due(self) -> float:
        """When something is to be done about it, in seconds; inf for never."""
        if self.phase is Phase.PREPARING:
            return 0.0 if self.ask_again else min((step.deadline for step in self.open_steps()), default=inf)
        return inf if self.read_at is None else self.read_at


class Bindings(dict[str, Decision]):
    """The decisions whose result is not known yet, by pod UID."""

    def __init__(self) -> None:
        super().__init__()
        self.unsettled: dict[str, Decision] = {}
        """Those that are prepared or read: they may have something to do as time passes."""

    def end(self, uid: str) -> Decision | None:
        """The result is known, or does not matter any more; None if no binding of the pod is under way."""
        self.unsettled.pop(uid, None)
        return self.pop(uid, None)

    def prepare(self, decision: Decision) -> None:
        """The decision's steps are taken from now on."""
        decision.phase = Phase.PREPARING
        self.unsettled[decision.bind.uid] = decision

    def post(self, decision: Decision) -> None:
        """The binding is being posted: all is prepared, or the pod was seen unassigned and it is posted again."""
        decision.phase, decision.read_at = Phase.POSTED, None
        del self.unsettled[decision.bind.uid]

    def read(self, decision: Decision, at: float | None = None) -> None:
        """The result is unknown: the pod is to be read at this time, in seconds; None: the answer to a read is
        awaited."""
        decision.phase, decision.read_at = Phase.READING, at
        self.unsettled[decision.bind.uid] = decision

    def read_later(self, decision: Decision, now: float, at_least: float = 0.0) -> None:
        """Plan the next read, later each time, in at least so many seconds."""
        wait = max(at_least, min(READ_AGAIN_AT_MOST, READ_AGAIN * 2.0 ** min(decision.reads, 8)))
        decision.reads += 1
        self.read(decision, now + wait)

    def note(self, kind: str) -> None:
        """An object of the kind changed: the pods whose preparation reads it are to be asked about again."""
        for decision in self.unsettled.values():
            decision.ask_again |= any(kind in step.plugin.kinds for step in decision.steps)

    def due(self, now: float) -> list[Decision]:
        """The pods to be read, and those whose preparation is to be looked at."""
        return [decision for decision in self.unsettled.values() if decision.due() <= now]

    def times(self) -> Iterator[float]:
        """When each of them has something to do next, in seconds; inf for never."""
        return (decision.due() for decision in self.unsettled.values())


def _is_older(seen: str, before: str, after: str) -> bool:
    """Whether a version comes before the one a patch made; versions that are no numbers cannot be compared, so that
    any but the one before the patch will do."""
    if seen.isdecimal() and after.isdecimal():
        return int(seen) < int(after)
    return seen == before != after
