"""Other schedulers that bind pods to the nodes that are scheduled onto here: each may overfill them for the others. So
bindings of the last minute may turn out not to hold: these, and the nodes that are read because of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from dataclasses import dataclass
from math import inf

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.scheduler.profiles import ProfileRuntime

MOST = 100
"""Scheduler names that are remembered: pods may name any."""


@dataclass(slots=True)
class Neighbour:
    """Somebody who binds pods of one scheduler name."""

    node: str
    """Where that was seen first."""
    bindings: int = 0


class Neighbours(dict[str, Neighbour]):
    """Who else binds pods here, by the pods' scheduler name."""

    def note(self, view: ClusterView, served: Container[str], pod: PodInfo) -> None:
        """A pod that waited was bound by somebody else. It counts where it, or another pod on the node, has a scheduler
        name that is `served` here; but not a DaemonSet's, whose node was never in question."""
        row, name = view.nodes.row_of.get(pod.node_name), pod.scheduler_name
        if row is None or (pod.owner is not None and pod.owner.kind == "DaemonSet"):
            return
        if not any(one.scheduler_name in served for one in view.nodes.pods_on(row).values()):
            return
        if name in self or len(self) < MOST:
            self.setdefault(name, Neighbour(pod.node_name)).bindings += 1


WATCHED = 60.0
"""Seconds for which a binding may turn out not to hold: whoever did not know of it when deciding has his own binding
answered by then (kube-apiserver's --request-timeout)."""
NEVER = -1
"""Before every reservation."""


@dataclass(slots=True, eq=False)
class BoundPod:
    """A pod that may have to give way."""

    runtime: ProfileRuntime
    """The policy that decided."""
    number: int
    """Of the reservation."""
    until: float
    is_evicted: bool = False


class UnverifiedBindings:
    """What `binding.verification` knows."""

    def __init__(self) -> None:
        self.bound: dict[str, dict[str, BoundPod]] = {}
        """Node -> UID -> pod."""
        self.came: dict[str, int] = {}
        """Node -> the number of the last reservation when somebody else was seen to bind a pod there last."""
        self.reading: dict[str, bool] = {}
        """Node whose pods are being read -> whether they are to be read once more, as something happened meanwhile."""
        self.read_at: dict[str, float] = {}
        """Node that could not be read -> when to try again, in seconds."""
        self.failures = 0
        """How often nodes could not be read since one could."""
        self._in_turn: deque[tuple[str, str]] = deque()
        """(node, UID) in the order in which their time is up."""

    def next_wakeup(self) -> float:
        """When a node is to be read, in seconds; inf for never."""
        return min(self.read_at.values(), default=inf)

    def watch(self, uid: str, node: str, runtime: ProfileRuntime, number: int, now: float) -> None:
        """The pod was bound."""
        self.bound.setdefault(node, {})[uid] = BoundPod(runtime, number, now + WATCHED)
        self._in_turn.append((node, uid))
        while self._in_turn:
            node, uid = self._in_turn[0]
            pod = self.bound.get(node, {}).get(uid)
            if pod is not None and pod.until > now:
                return
            self._in_turn.popleft()
            self.forget(uid, node)

    def forget(self, uid: str, node: str) -> None:
        """The pod stays where it is, or is gone."""
        pods = self.bound.get(node)
        if pods is not None:
            pods.pop(uid, None)
            if not pods:
                del self.bound[node]
