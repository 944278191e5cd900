"""The extension points between the choice of a node and its binding: Reserve, Unreserve, Permit and PreBind.

They see one pod and one node; the node's room is taken already (`ClusterView.assume`) when they are asked.

PreBind is for plugins that must change other objects (a volume, a claim) before the pod may be bound. Such a plugin
keeps nothing itself and writes nothing itself; it says what is to be done:

    Reserve    `plan` answers with a `Plan`; what it assumes is shown to every later decision from then on
    Unreserve  the core takes the assumptions back
    PreBind    the core has the patches made one after the other, and waits until the watch shows them; then it asks
               `prepared`, again after each change to an object of the plugin's `kinds`, until that is SUCCESS
    Bind       follows once all PreBind plugins are done
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from policyengine.cluster.object_store import ClusterObject
from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.plugin import Plugin
from policyengine.framework.status import SUCCESS, State, Status

MAX_PERMIT_WAIT = 15 * 60.0
"""Seconds; longer waits are cut to this (kube-scheduler's maxTimeout, framework/runtime/framework.go)."""


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Takes what a placed pod needs beside the node's room, and gives it back."""

    def reserve(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> Status:
        """SUCCESS, or why the pod cannot have it: the placement is then undone."""

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        """Give back what `reserve` took. Does nothing where it took nothing; must not fail."""


class Permission(NamedTuple):
    """A Permit plugin's answer."""

    status: Status
    """SUCCESS, a refusal, or WAIT."""
    timeout: float = 0.0
    """Of WAIT: the seconds, counted from the reservation, after which waiting turns into a refusal."""
    ask_in: float | None = None
    """Of WAIT: the seconds from now after which the plugin is asked again; None where only an event can tell."""


PERMITTED = Permission(SUCCESS)


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Lets a reserved pod be bound, refuses it, or has it wait."""

    def permit(self, pod: PodInfo, node_name: str, snapshot: Snapshot, waited: float) -> Permission:
        """Whether the pod, which has waited for so many seconds, may be bound.

        A pod that waits is asked again when an event happens for which the plugin registered, each minute where it
        registered for the passing of minutes, and when the answer says.
        """


@dataclass(frozen=True, slots=True)
class ObjectPatch:
    """A JSON merge patch (RFC 7386) of one object that is still the one decided about.

    The server refuses it where the UID or the version is another; one that is empty does not matter. Of several patches
    of one object in a plan, the later ones are made on the version that the one before resulted in.
    """

    kind: str
    namespace: str
    """Empty for a cluster-scoped kind."""
    name: str
    uid: str
    resource_version: str
    patch: Mapping[str, object]
    """Without `metadata.uid` and `metadata.resourceVersion`, which are added."""
    subresource: str = ""
    stamped: tuple[str, ...] = ()
    """The path in the patch at which the time of sending is written; none where it is empty."""
    verb: Literal["PATCH", "POST", "DELETE"] = "PATCH"
    """POST: there is no such object yet, and `patch` is all of it; what was made goes with the reservation. DELETE: it
    goes."""
    strategic: bool = False
    """A strategic merge patch: it adds one element to a list that others change too, or takes one out, and is made on
    any version."""
    undo: Mapping[str, object] | None = None
    """The strategic merge patch that takes this one back; what has none stays."""

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def undone(self) -> tuple[ObjectPatch, ...]:
        """What takes the patch back. Of an object that was made: it goes, whatever keeps it."""
        if self.undo is not None:
            return (replace(self, resource_version="", patch=self.undo, stamped=(), strategic=True, undo=None),)
        if self.verb == "PATCH":
            return ()
        freed = ObjectPatch(self.kind, self.namespace, self.name, self.uid, "", {"metadata": {"finalizers": None}})
        return freed, replace(freed, patch={}, verb="DELETE")

    def sent_at(self, now: float) -> ObjectPatch:
        """The patch as it is sent at this time, in seconds since the epoch."""
        return replace(self, patch=_with(self.patch, self.stamped, format_time(now))) if self.stamped else self


def _with(patch: Mapping[str, object], path: tuple[str, ...], text: str) -> Mapping[str, object]:
    name, *rest = path
    inner = patch.get(name)
    return {**patch, name: _with(inner, tuple(rest), text) if rest and isinstance(inner, Mapping) else text}


class Announcement(NamedTuple):
    """An event for the pod, of type Normal."""

    reason: str
    note: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a placement changes in other objects."""

    assumed: tuple[tuple[str, ClusterObject], ...] = ()
    """(kind, the object as it will be, with the resourceVersion of the observed one): so that no other pod takes
    it. An object is assumed for one pod at a time. Lasts until the patches are observed, or the pod is given up."""
    patches: tuple[ObjectPatch, ...] = ()
    """In the order in which they are to be made; the first that fails ends the attempt."""
    timeout: float = 600.0
    """Seconds from the first patch until `prepared` must have answered SUCCESS."""
    on_timeout: str = "context deadline exceeded"
    """The failure's text when it has not."""
    state: State = None
    """What `prepared` needs to know; only the plugin reads it."""
    announcement: Announcement | None = None
    """What the pod's owner is told once the patches are made and seen."""


NOTHING_TO_DO = Plan()


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Prepares other objects for a placed pod before it is bound. Holds no state of its own."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of objects `prepared` reads, as in `snapshot.objects(kind)`."""

    def plan(self, pod: PodInfo, node_name: str, snapshot: Snapshot) -> tuple[Status, Plan]:
        """Asked at Reserve. SUCCESS with what is to be done; SKIP where the pod needs nothing of this plugin; or why
        the pod cannot have it: the placement is then undone."""

    def prepared(self, pod: PodInfo, node_name: str, plan: Plan, snapshot: Snapshot) -> Status:
        """Whether the pod may be bound: SUCCESS, WAIT, or what went wrong: the placement is then undone and tried
        again after a backoff."""
