"""What the core is told: messages, in the past tense. They carry decoded objects.

A log of (now, message) pairs reproduces every decision: nothing else reaches the core. What it wants done in turn is
in `actions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from policyengine.cluster.objects import Node, Pod
from policyengine.enum_members import direct_members
from policyengine.framework.profile import Profile
from policyengine.scheduler.actions import (
    AskAboutVictims,
    AskExtenders,
    DeleteVictim,
    NodeVictims,
    PatchObject,
    ReadPod,
)
from policyengine.scheduler.rollout.rollout_settings import RolloutSettings


@dataclass(frozen=True, slots=True)
class NodeObserved:
    """A node was added or changed, by a list or a watch; the core tells which."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeDeleted:
    """A node is gone."""

    name: str


@dataclass(frozen=True, slots=True)
class PodObserved:
    """A pod was added or changed, as a list or a watch shows it."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodDeleted:
    """A pod is gone. An empty `uid` means whichever pod has the name."""

    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class ObjectObserved:
    """An object of another kind (`Namespace`, `Service`, `PersistentVolumeClaim`, …) was added or changed."""

    kind: str
    object: object


@dataclass(frozen=True, slots=True)
class ObjectDeleted:
    """An object of another kind is gone."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class CacheSynced:
    """Every list of the start is in: cycles may begin."""


@dataclass(frozen=True, slots=True)
class ProfileReplaced:
    """A policy was loaded or replaced; takes effect before the next cycle."""

    profile: Profile


@dataclass(frozen=True, slots=True)
class ProfileRemoved:
    """No policy serves this scheduler name any more; its pods wait."""

    scheduler_name: str


@dataclass(frozen=True, slots=True)
class CandidateLoaded:
    """A policy is to be tried beside the one that serves its scheduler name; it takes another candidate's place."""

    profile: Profile
    settings: RolloutSettings
    suspended: str = ""
    """Why it is tried no more already: it was suspended before this process began."""


@dataclass(frozen=True, slots=True)
class CandidateRemoved:
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


@dataclass(frozen=True, slots=True)
class BindSucceeded:
    """The binding was created."""

    uid: str


@dataclass(frozen=True, slots=True)
class BindFailed:
    """The binding was refused; nothing was changed on the server."""

    uid: str
    failure: BindFailure
    message: str
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class BindUnknown:
    """The request's outcome is unknown (time-out, lost connection): the reservation stays until it is known."""

    uid: str
    message: str


@dataclass(frozen=True, slots=True)
class ObjectPatched:
    """An object was changed as asked; it has this version now."""

    asked: PatchObject
    resource_version: str


@dataclass(frozen=True, slots=True)
class ObjectPatchFailed:
    """An object was not changed, or it is not known whether it was: the version in the patch keeps a late request
    from doing harm."""

    asked: PatchObject
    failure: BindFailure
    message: str
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class VictimDeleted:
    """A victim was deleted, or is gone: then it was not there to be deleted."""

    asked: DeleteVictim
    was_there: bool = True


@dataclass(frozen=True, slots=True)
class VictimNotDeleted:
    """A victim was not deleted, or it is not known whether it was."""

    asked: DeleteVictim
    message: str
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class ExtendersAnswered:
    """The extenders said which of the nodes they were asked about may be taken, and how they like these; or one that
    must answer did not (`error`)."""

    asked: AskExtenders
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Node -> (extender, reason); preemption may cure it."""
    unresolvable: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Node -> (extender, reason); preemption cannot cure it."""
    scores: Mapping[str, int] = field(default_factory=dict)
    """Node -> weighted score, on the scale of the plugins' total."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class VictimsAnswered:
    """The extenders said on which of the nodes they were asked about room may be made, and by whose leaving; or one
    that must answer did not (`error`)."""

    asked: AskAboutVictims
    victims: Mapping[str, NodeVictims] = field(default_factory=dict)
    """By node; nobody's leaving is never enough."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class PodRead:
    """The pod as it was after it was asked for: a watch may show what is older."""

    asked: ReadPod
    pod: Pod


@dataclass(frozen=True, slots=True)
class ReadPodFailed:
    """The answer to a `ReadPod` never came; the core asks again after a while."""

    uid: str
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed: expire backoffs, flush what waited too long, time out gangs."""


@dataclass(frozen=True, slots=True)
class CyclesRequested:
    """Run up to `limit` scheduling cycles."""

    limit: int


@dataclass(frozen=True, slots=True)
class ComparisonRequested:
    """The actions of the last cycle were handed over: compare its decision, if a candidate is tried. Comes before any
    other message."""

    seconds: float
    """That the cycle took."""


@dataclass(frozen=True, slots=True)
class ComparisonTimed:
    """The comparison just made took so long."""

    seconds: float


Message = (
    NodeObserved
    | NodeDeleted
    | PodObserved
    | PodDeleted
    | ObjectObserved
    | ObjectDeleted
    | CacheSynced
    | ProfileReplaced
    | ProfileRemoved
    | CandidateLoaded
    | CandidateRemoved
    | BindSucceeded
    | BindFailed
    | BindUnknown
    | ObjectPatched
    | ObjectPatchFailed
    | VictimDeleted
    | VictimNotDeleted
    | ExtendersAnswered
    | VictimsAnswered
    | PodRead
    | ReadPodFailed
    | Tick
    | CyclesRequested
    | ComparisonRequested
    | ComparisonTimed
)
