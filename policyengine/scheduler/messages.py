"""What the core is told: messages, in the past tense. They carry decoded objects.

A log of (now, message) pairs reproduces every decision: nothing else reaches the core. What it wants done in turn is
in `actions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

import msgspec

from policyengine.cluster.demand_history import SavedHistory
from policyengine.cluster.node_objects import Node
from policyengine.cluster.pod_objects import Pod
from policyengine.enum_members import direct_members
from policyengine.framework.profile import Profile
from policyengine.scheduler import actions
from policyengine.scheduler.rollout import RolloutSettings


class Message(msgspec.Struct, frozen=True):
    """Something that the core is told."""


class NodeObserved(Message, frozen=True):
    """A node was added or changed, by a list or a watch; the core tells which."""

    node: Node
    anew: bool = False
    """Whether it counts whichever version was known: the server has gone back (`CacheLost`)."""


class NodeDeleted(Message, frozen=True):
    """A node is gone."""

    name: str


class PodObserved(Message, frozen=True):
    """A pod was added or changed, as a list or a watch shows it."""

    pod: Pod
    anew: bool = False
    """As a node's."""


class PodDeleted(Message, frozen=True):
    """A pod is gone. An empty `uid` means whichever pod has the name."""

    namespace: str
    name: str
    uid: str = ""


class ObjectObserved(Message, frozen=True):
    """An object of another kind (`Namespace`, `Service`, `PersistentVolumeClaim`, …) was added or changed."""

    kind: str
    object: object
    anew: bool = False
    """As a node's."""


class ObjectDeleted(Message, frozen=True):
    """An object of another kind is gone."""

    kind: str
    namespace: str
    name: str


class DemandRemembered(Message, frozen=True):
    """What an earlier process learnt of the pods that were placed; comes before the first pod."""

    saved: SavedHistory


class CacheSynced(Message, frozen=True):
    """Every list is in: cycles may begin, or go on."""

    unwritten_since: float | None = None
    """From when on, in seconds since the epoch, a predecessor that died may have left pods bound without their events;
    None where there was none, or it ended cleanly."""


class CacheLost(Message, frozen=True):
    """The server has gone back to an older copy, or is another one: nothing is decided until everything was observed
    `anew` and `CacheSynced` has come again."""


class ProfileReplaced(Message, frozen=True):
    """A policy was loaded or replaced; takes effect before the next cycle."""

    profile: Profile


class ProfileRemoved(Message, frozen=True):
    """No policy serves this scheduler name any more; its pods wait."""

    scheduler_name: str


class CandidateLoaded(Message, frozen=True):
    """A policy is to be tried beside the one that serves its scheduler name; it takes another candidate's place."""

    profile: Profile
    settings: RolloutSettings
    suspended: str = ""
    """Why it is tried no more already: it was suspended before this process began."""


class CandidateRemoved(Message, frozen=True):
    """No policy is tried for this scheduler name any more."""

    scheduler_name: str


@direct_members
class BindFailure(Enum):
    """Why the API server did not bind, as far as the core acts on it."""

    CONFLICT = "Conflict"
    """409: assigned already, gated, deleting, or another UID; the truth arrives by the watch."""
    NOT_FOUND = "NotFound"
    """404: the pod is gone."""
    REFUSED = "Refused"
    """403, 422 and other lasting answers: back off and tell the user."""
    OVERLOADED = "Overloaded"
    """429, 500, 503: nothing happened, try again after a while."""
    WITHDRAWN = "Withdrawn"
    """The runner asked `SchedulerState.may_bind` right before posting, was told no, and posted nothing."""


class BindSucceeded(Message, frozen=True):
    """The binding was created."""

    uid: str


class BindFailed(Message, frozen=True):
    """The binding was refused; nothing was changed on the server."""

    uid: str
    failure: BindFailure
    message: str
    retry_after: float = 0.0


class BindUnknown(Message, frozen=True):
    """The request's outcome is unknown (time-out, lost connection): the reservation stays until it is known."""

    uid: str
    message: str


class ObjectPatched(Message, frozen=True):
    """An object was changed as asked; it has this version now."""

    asked: actions.PatchObject
    resource_version: str


class ObjectPatchFailed(Message, frozen=True):
    """An object was not changed, or it is not known whether it was: the version in the patch keeps a late request
    from doing harm."""

    asked: actions.PatchObject
    failure: BindFailure
    message: str
    retry_after: float = 0.0


class VictimDeleted(Message, frozen=True):
    """A victim was deleted, or is gone: then it was not there to be deleted."""

    asked: actions.DeleteVictim
    was_there: bool = True


class VictimNotDeleted(Message, frozen=True):
    """A victim was not deleted, or it is not known whether it was."""

    asked: actions.DeleteVictim
    message: str
    retry_after: float = 0.0


class ExtendersAnswered(Message, frozen=True):
    """The extenders said which of the nodes they were asked about may be taken, and how they like these; or one that
    must answer did not (`error`)."""

    asked: actions.AskExtenders
    refused: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """Node -> (extender, reason); preemption may cure it."""
    unresolvable: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """Node -> (extender, reason); preemption cannot cure it."""
    scores: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Node -> weighted score, on the scale of the plugins' total."""
    error: str = ""


class VictimsAnswered(Message, frozen=True):
    """The extenders said on which of the nodes they were asked about room may be made, and by whose leaving; or one
    that must answer did not (`error`)."""

    asked: actions.AskAboutVictims
    victims: Mapping[str, actions.NodeVictims] = msgspec.field(default_factory=dict)
    """By node; nobody's leaving is never enough."""
    error: str = ""


class PodRead(Message, frozen=True):
    """The pod as it was after it was asked for: a watch may show what is older."""

    asked: actions.ReadPod
    pod: Pod


class ReadPodFailed(Message, frozen=True):
    """The answer to a `ReadPod` never came; the core asks again after a while."""

    uid: str
    retry_after: float = 0.0


class NodePodsRead(Message, frozen=True):
    """The pods that stood on a node after they were asked for; a watch may show what is older."""

    asked: actions.ReadNodePods
    pods: tuple[Pod, ...]


class ReadNodePodsFailed(Message, frozen=True):
    """The answer to a `ReadNodePods` never came; the core asks again after a while."""

    asked: actions.ReadNodePods
    retry_after: float = 0.0


class Tick(Message, frozen=True):
    """Time passed: expire backoffs, flush what waited too long, time out gangs."""


class CyclesRequested(Message, frozen=True):
    """Run up to `limit` scheduling cycles."""

    limit: int


class ComparisonRequested(Message, frozen=True):
    """The actions of the last cycle were handed over: compare its decision, if a candidate is tried. Comes before any
    other message."""

    seconds: float
    """That the cycle took."""


class ComparisonTimed(Message, frozen=True):
    """The comparison just made took so long."""

    seconds: float


class DrivenCore(Protocol):
    """What is driven: `scheduler.state.SchedulerState`, as far as a runner sees it."""

    def handle(self, message: Message, now: float) -> list[actions.Action]:
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
