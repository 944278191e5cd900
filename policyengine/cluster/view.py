"""The cluster view: the core's one store of nodes, pods and other objects, updated event by event.

A pod's states, and what moves it between them:

    unknown --add--> pending --assume--> assumed --update with a node--> bound --delete/finish--> gone
                        ^                   |                              ^
                        +------forget-------+                              |
    unknown --add with a node----------------------------------------------+

    assumed on a, arrives bound to b      adopted on b: the server is right
    assumed, arrives without a node       stays assumed: the event is older than the binding
    assumed or pending, delete/finish     gone; an assumed one gives its room back

Rules:
1. The outcome depends on the newest version of each object only: events may repeat, come late, or be merged.
   A version older than the one known is ignored, but where it comes `anew`: the server has gone back. A new UID under a
   known name replaces the old pod at once.
2. Every pod with a node counts on that node, whichever scheduler placed it. Pods on an unknown node are orphans. They
   count once the node is known.
3. A finished pod holds nothing and is not kept.
4. `assume` has no time limit: only the server's word, or `forget`, ends it.
5. Whatever a reader can see change bumps `generation`, and rows go to the journals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import NamedTuple, TypeVar

from policyengine.cluster.demand_history import DemandHistory
from policyengine.cluster.device_slices import DeviceSlices
from policyengine.cluster.events import ASSIGNED_POD_DELETE, FINISHED_POD_ADD, NODE_ADD, NODE_DELETE, ClusterEvent
from policyengine.cluster.finished import KEPT_FOR
from policyengine.cluster.node_objects import Node
from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.object_store import ObjectStore, is_newer, version_is_newer
from policyengine.cluster.objects import Wire
from policyengine.cluster.pending_claims import PendingClaims
from policyengine.cluster.pod_groups import NATIVE, POD_GROUP, KnownGroups
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.pod_store import PodStore
from policyengine.cluster.scheduling_status import SchedulingStatus
from policyengine.cluster.update_events import departure, node_events, pod_events
from policyengine.cluster.usage_counts import Grouping, UsageCounts
from policyengine.cluster.workload_objects import NativePodGroup, PodGroup

T = TypeVar("T", bound=Wire)


class PodChange(NamedTuple):
    """What became of a pod. Both equal: it is what it was. `new` None: it is gone, or finished. The events of a pod
    that was not known say at most that it ended."""

    old: PodInfo | None
    new: PodInfo | None
    events: list[ClusterEvent]


class ClusterView(ObjectStore, PodStore):
    """Nodes, pods and other objects as last seen, plus what the scheduler has assumed."""

    def __init__(self) -> None:
        ObjectStore.__init__(self)
        PodStore.__init__(self, self.objects_of)
        self._now = 0.0
        self.scheduling = SchedulingStatus()
        """The pods' gangs and their place in the queues; set by the scheduler."""
        self.demand = DemandHistory(self.pods)
        """What the pods that were placed asked for."""
        self._snapshot = Snapshot(self)

    @property
    def now(self) -> float:
        """When the decision began, in seconds since the epoch; set by the caller."""
        return self._now

    @now.setter
    def now(self, now: float) -> None:
        self._now = now
        finished = self.nodes.derived.finished
        if finished.oldest <= now - KEPT_FOR:
            self._note_finished(finished.expire(now))

    def _note_finished(self, node_names: Iterable[str]) -> None:
        for name in node_names:
            self.generation += 1
            self.nodes.note_pods(name)

    def add_or_update_node(self, node: Node, anew: bool = False) -> list[ClusterEvent]:
        """Take a node as observed; its orphans count on it from now on. `anew`: be it of an older version."""
        row = self.nodes.row_of.get(node.metadata.name)
        old = None if row is None else self.nodes.objects[row]
        if old is not None and not anew and not is_newer(node.metadata, old.metadata):
            return []
        self.generation += 1
        row = self.nodes.set_node(node)
        if old is None:
            for info in self.orphans.pop(node.metadata.name, {}).values():
                self.nodes.add_pod(row, info)
            return [NODE_ADD]
        if old.metadata.uid != node.metadata.uid:
            return [NODE_DELETE, NODE_ADD]
        return node_events(old, node)

    def remove_node(self, name: str) -> list[ClusterEvent]:
        """A node is gone; its pods are kept as orphans until they go, or it comes back."""
        if name not in self.nodes.row_of:
            return []
        self.generation += 1
        pods = self.nodes.remove_node(name)
        if pods:
            self.orphans[name] = pods
        return [NODE_DELETE]

    def add_or_update_pod(self, pod: Pod, anew: bool = False) -> PodChange:
        """Take a pod as observed. `anew`: be it of an older version."""
        metadata = pod.metadata
        uid = metadata.uid or metadata.key
        old = self.pods.get(uid)
        if old is None:
            return self._new_pod(pod, uid, anew)
        if not anew and not version_is_newer(metadata.resource_version, old.resource_version):
            return PodChange(old, old, [])
        new = PodInfo(pod, old)
        if new.finished:
            ended = self._note_end(pod)
            change = self.remove_pod(uid)
            return change._replace(events=change.events + ended)
        if old.state is PodState.ASSUMED and not new.node_name:
            new.node_name, new.state = old.node_name, PodState.ASSUMED
        self.generation += 1
        self._replace(old, new)
        if new.state is PodState.BOUND and old.state is not PodState.BOUND:
            self.demand.note(new)
        return PodChange(old, new, pod_events(old, new))

    def _new_pod(self, pod: Pod, uid: str, anew: bool) -> PodChange:
        new = PodInfo(pod)
        ended = self._note_end(pod) if new.finished else []
        namesake = self.pods.get(self._uid_of.get(new.key, ""))
        if namesake is not None and not anew and _is_late_word(new, namesake):
            return PodChange(namesake, namesake, ended)
        gone = [] if namesake is None else self.remove_pod(namesake.uid).events
        if new.finished:
            return PodChange(namesake, None, gone + ended)
        self.generation += 1
        self._enter(new)
        if new.state is PodState.BOUND:
            self.demand.note(new)
        return PodChange(namesake, new, gone + pod_events(None, new))

    def remove_pod(self, uid: str) -> PodChange:
        """A pod is gone, or finished; an unknown one is no change."""
        info = self.pods.get(uid)
        if info is None:
            return PodChange(None, None, [])
        self.generation += 1
        event = departure(info)
        self._leave(info)
        info.state = PodState.GONE
        return PodChange(info, None, [event])

    def _note_end(self, pod: Pod) -> list[ClusterEvent]:
        node_name = self.nodes.derived.finished.note(pod, self._now)
        if node_name is None:
            return []
        self._note_finished((node_name,))
        return [FINISHED_POD_ADD]

    def assume(self, uid: str, node_name: str) -> None:
        """Count a pending pod on a node from now on. Raises ValueError for a pod that is not pending, and for an
        unknown node: the caller has not looked.
        """
        info = self.pods.get(uid)
        row = self.nodes.row_of.get(node_name)
        if info is None or info.state is not PodState.PENDING or row is None:
            raise ValueError(f"cannot assume {info or uid} on node `{node_name}`")
        self.generation += 1
        self._withdraw(info)
        info.node_name, info.state = self.nodes.names[row], PodState.ASSUMED
        self.nodes.add_pod(row, info)
        self._count_in(info)

    def forget(self, uid: str) -> list[ClusterEvent]:
        """Take an assumption back; the pod is pending again. No change where the pod is gone or bound by now.

        Counts as the deletion of an assigned pod: others may fit where it stood.
        """
        info = self.pods.get(uid)
        if info is None or info.state is not PodState.ASSUMED:
            return []
        self.generation += 1
        self._displace(info)
        info.node_name, info.state = "", PodState.PENDING
        self._await(info)
        return [ASSIGNED_POD_DELETE]

    def nominate(self, uid: str, node_name: str) -> None:
        """Note that room is being made for a pending pod on a node; "" ends it. The next update overwrites it."""
        info = self.pods.get(uid)
        if info is None or info.state is not PodState.PENDING:
            return
        self.generation += 1
        self._withdraw(info)
        info.nominated_node_name = node_name
        self._await(info)

    @contextmanager
    def hypothetically(self, remove: Iterable[str] = (), add: Iterable[tuple[str, str]] = ()) -> Iterator[Snapshot]:
        """The view without some pods and with pending ones assumed, until the block ends; then as before.

        Unknown UIDs in `remove` are passed over. Nests. The block must not change the view for good.
        """
        taken = [self.pods[uid] for uid in dict.fromkeys(remove) if uid in self.pods]
        given = list(add)
        order = {info.node_name: dict(self.pods_of_node(info.node_name)) for info in taken if info.node_name}
        self.generation += 1
        for info in taken:
            self._leave(info)
        placed: list[str] = []
        try:
            for uid, node_name in given:
                self.assume(uid, node_name)
                placed.append(uid)
            yield self.snapshot()
        finally:
            for uid in reversed(placed):
                self.forget(uid)
            for info in reversed(taken):
                self._enter(info)
            for node_name, pods in order.items():
                self._put_in_order(node_name, pods)
            self.generation += 1

    def regroup(self, kind: str, key: str) -> list[PodChange]:
        """A PodGroup or namespace came, changed or went: its pods are made anew with what it is now. Objects of other
        kinds have no pods."""
        changes: list[PodChange] = []
        item = self.objects_of(kind).get(key)
        for old in list(self.related.of(kind, key).values()):
            if not self.related.is_same(old, kind, item):
                new = copy(old)
                self._replace(old, new)
                changes.append(PodChange(old, new, []))
        self.generation += bool(changes)
        return changes

    def snapshot(self) -> Snapshot:
        """The view to read from, at this generation; the same one until something changes."""
        if self._snapshot.generation != self.generation:
            self._snapshot = Snapshot(self)
        return self._snapshot


class Snapshot:
    """The cluster view at one generation, to read from.

    No copy: the core is single-threaded, and a decision is over before the next message. Nothing keeps one longer.
    """

    __slots__ = ("_view", "generation", "nodes", "pods")

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.generation: int = view.generation
        self.nodes: NodeTable = view.nodes
        self.pods: Mapping[str, PodInfo] = view.pods
        """UID -> pod: pending, assumed and bound."""

    @property
    def now(self) -> int:
        """When the decision began, in whole seconds since the epoch."""
        return int(self._view.now)

    def with_table(self, nodes: NodeTable) -> Snapshot:
        """The same, with another table of the same nodes (`NodeTable.with_own_sums`)."""
        other = Snapshot(self._view)
        other.nodes = nodes
        return other

    @property
    def pending_count(self) -> int:
        """Pods neither assumed nor bound."""
        return self._view.pending_count

    def objects(self, kind: type[T]) -> Mapping[str, T]:
        """Key -> object of another kind, as `ObjectStore.objects` shows it."""
        return self._view.objects(kind)

    def version(self, kind: str) -> int:
        """Grows whenever an object of the kind changes; keys what is cached about them."""
        return self._view.version(kind)

    @property
    def object_changes(self) -> int:
        """Grows whenever an object of any kind changes: while it stays, so does every `version`."""
        return self._view.object_changes

    @property
    def pending_claims(self) -> PendingClaims:
        """Claims allocated by a reservation and not seen allocated yet; what Reserve adds to."""
        return self._view.pending_claims

    @property
    def device_slices(self) -> DeviceSlices:
        """The ResourceSlices, by node and pool."""
        return self._view.device_slices

    def usage_counts(self, grouping: Grouping) -> UsageCounts:
        """What the pods with a node ask for, by the groups that `grouping` puts them in; kept from then on."""
        return self._view.usage_counts(grouping)

    @property
    def scheduling(self) -> SchedulingStatus:
        """The pods' gangs and their place in the queues."""
        return self._view.scheduling

    @property
    def demand(self) -> DemandHistory:
        """What the pods that were placed asked for."""
        return self._view.demand

    @property
    def pod_groups(self) -> KnownGroups:
        """The PodGroup objects, by name."""
        versions = self.version(POD_GROUP), self.version(NATIVE)
        return KnownGroups(versions, self.objects(PodGroup), self.objects(NativePodGroup))

    @property
    def nominated(self) -> Mapping[str, Mapping[str, PodInfo]]:
        """Node name -> UID -> pending pod; only nodes with nominations."""
        return self._view.nominated


def _is_late_word(pod: PodInfo, namesake: PodInfo) -> bool:
    """Whether `pod` had the name before `namesake`, which has replaced it; as `is_newer`, for pods kept."""
    older = not version_is_newer(pod.resource_version, namesake.resource_version)
    return older and pod.created_at <= namesake.created_at
