"""A naive cluster around the core: an API server that is a few dicts, watches that lag, bindings that go wrong.

It shares no code with the scheduler beyond the messages, and counts everything anew each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Self, TypeVar

from policyengine.scheduler.actions import Action, Bind, DeleteVictim, PatchPodCondition, ReadPod
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    Message,
    NodeDeleted,
    NodeObserved,
    PodDeleted,
    PodObserved,
    PodRead,
    ReadPodFailed,
    VictimDeleted,
    VictimNotDeleted,
)
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.scheduler.driver import Driver

OURS = "default-scheduler"
B = TypeVar("B", PodBuilder, NodeBuilder)
NEVER = 1e6
"""Seconds after which nothing counts as due: the flush of a queue that is not to be flushed."""
STUCK = "1970-01-01T00:16:40Z"
"""When the victims that never die should have gone: in the second in which a history begins."""


class World:
    """`server` is the truth, `driver` what the scheduler makes of what it is shown of it."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.nodes: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.watch: deque[Message] = deque()
        self.posted: deque[Bind] = deque()
        self.late: list[Bind] = []
        """Requests whose answer was lost and which the server has not carried out yet."""
        self.reads: deque[ReadPod] = deque()
        self.evictions: deque[DeleteVictim] = deque()
        self.patches: deque[PatchPodCondition] = deque()
        self.bound_by_us: list[str] = []
        self.on_the_way: set[str] = set()
        """UIDs of pods with a binding that may land, as far as anybody was told."""
        self.actions: list[Action] = []
        self._count = 0
        self._version = 0

    # ---- what users and controllers do

    def set_node(self, name: str, cpu: int, cordoned: bool) -> None:
        self.nodes[name] = {"cpu": cpu, "cordoned": cordoned}
        builder = make_node(name).capacity(cpu=f"{cpu}", memory="64Gi", pods="110").unschedulable(cordoned)
        self.watch.append(NodeObserved(self._next_version(builder).build()))

    def delete_node(self, name: str) -> None:
        if self.nodes.pop(name, None) is not None:
            self.watch.append(NodeDeleted(name))

    def create_pod(
        self,
        cpu: int,
        gang: str = "",
        gated: bool = False,
        scheduler: str = OURS,
        minimum: int = 2,
        priority: int = 0,
        **more: Any,
    ) -> None:
        self._count += 1
        uid = f"p{self._count}"
        labels = {"gang": gang, "min": str(minimum)} if gang else {}
        fields = {"cpu": cpu, "labels": labels, "gated": gated, "scheduler": scheduler, "priority": priority}
        unseen = {"node": "", "nominated": "", "deleting": False, "stuck": False, "marked": False}
        self.pods[uid] = fields | unseen | more
        self._show(uid)

    def create_important_pod(self, cpu: int, priority: int) -> None:
        self.create_pod(cpu, priority=priority)

    def create_pod_of(self, team: str, cpu: int, priority: int) -> None:
        self.create_pod(cpu, priority=priority, labels={"team": team})

    def delete_pod(self, number: int, gracefully: bool) -> None:
        uid = self._pick(number)
        if uid is None:
            return
        if gracefully:
            self.pods[uid]["deleting"] = True
            self._show(uid)
        else:
            self._let_go(uid)

    def finish_pod(self, number: int) -> None:
        uid = self._pick(number)
        if uid is not None and self.pods[uid]["node"]:
            finished = self._next_version(self._builder(uid)).phase("Succeeded")
            self.watch.append(PodObserved(finished.build()))
            del self.pods[uid]

    def touch_pod(self, number: int, ungate: bool) -> None:
        uid = self._pick(number)
        if uid is not None:
            self.pods[uid]["labels"] = {**self.pods[uid]["labels"], "touched": str(number)}
            self.pods[uid]["gated"] = self.pods[uid]["gated"] and not ungate
            self._show(uid)

    def bind_by_hand(self, number: int, node: str) -> None:
        uid = self._pick(number)
        if uid is not None and not self.pods[uid]["node"]:
            self.pods[uid]["node"] = node
            self._show(uid)

    def kubelet(self) -> None:
        """Ends the pods that are being deleted, but for those that never die."""
        for uid in [uid for uid, pod in self.pods.items() if pod["deleting"] and not pod["stuck"]]:
            self._let_go(uid)

    def play(self, history: Iterable[tuple[Any, ...]]) -> Self:
        """Carry out steps: (method, its arguments)."""
        for step, *values in history:
            getattr(self, step)(*values)
        return self

    # ---- what the machinery does

    def deliver(self, count: int) -> None:
        for _ in range(min(count, len(self.watch))):
            self.send(self.watch.popleft())

    def cycle(self, count: int) -> None:
        self._take(self.driver.cycle(count))

    def wait(self, seconds: float) -> None:
        self._take(self.driver.wait(seconds))

    def send(self, message: Message) -> None:
        if isinstance(message, BindFailed):
            self.on_the_way.discard(message.uid)
        self._take(self.driver.send(message))

    def answer_bind(self, how: str) -> None:
        """The oldest binding that was posted reaches the server, or does not."""
        if not self.posted:
            return
        bind = self.posted.popleft()
        if not self.driver.state.may_bind(bind.uid) and how == "asks":
            self.send(BindFailed(bind.uid, BindFailure.WITHDRAWN, "not posted"))
        elif how in ("refused", "overloaded"):
            failure = BindFailure.REFUSED if how == "refused" else BindFailure.OVERLOADED
            self.send(BindFailed(bind.uid, failure, how, 3.0 if how == "overloaded" else 0.0))
        elif how == "lost and landed":
            self._carry_out(bind)
            self.send(BindUnknown(bind.uid, "timed out"))
        elif how == "lost":
            self.send(BindUnknown(bind.uid, "timed out"))
        elif how == "lost and late":
            self.late.append(bind)
            self.send(BindUnknown(bind.uid, "timed out"))
        else:
            self.send(self._carry_out(bind))

    def land_late(self) -> None:
        for bind in self.late:
            self._carry_out(bind)
        self.late.clear()

    def answer_read(self, fails: bool) -> None:
        if not self.reads:
            return
        read = self.reads.popleft()
        if fails:
            self.send(ReadPodFailed(read.uid))
        elif read.uid not in self.pods:
            self.send(PodDeleted(read.namespace, read.name, read.uid))
        else:
            # As new as the server; what the watch still has to show of the pod comes after it, and is older.
            pod = self._builder(read.uid).version(self.pods[read.uid]["version"]).build()
            self.send(PodRead(read, pod))

    def answer_eviction(self, how: str) -> None:
        """The oldest victim that was to be deleted is, or is not, or nobody knows."""
        if not self.evictions:
            return
        asked = self.evictions.popleft()
        if how == "refused":
            self.send(VictimNotDeleted(asked, "refused"))
            return
        was_there = asked.uid in self.pods
        if was_there:
            pod = self.pods[asked.uid]
            pod |= {"marked": True, "deleting": True, "stuck": pod["stuck"] or how == "never dies"}
            self._show(asked.uid)
            if not pod["node"]:
                self._let_go(asked.uid)
        self.send(VictimNotDeleted(asked, "timed out") if how == "lost" else VictimDeleted(asked, was_there))

    def write_status(self) -> None:
        """The oldest nomination reaches the server."""
        if self.patches:
            patch = self.patches.popleft()
            if patch.uid in self.pods and patch.nominated_node_name is not None:
                self.pods[patch.uid]["nominated"] = patch.nominated_node_name
                self._show(patch.uid)

    def drain(self) -> None:
        """Everything in the pipes arrives."""
        while self._pipes():
            self._arrive()

    def settle(self, rounds: int = 60) -> None:
        """Everything in the pipes arrives, nothing fails any more, and time passes until nothing moves."""
        self.land_late()
        for _ in range(rounds):
            self.drain()
            self.kubelet()
            self.cycle(100)
            if not self._pipes() and not self.driver.state.ready:
                due = self.driver.state.next_wakeup()
                if due is None or due > self.driver.now + NEVER:
                    return
                self.wait(31.0)
        for _ in range(5):  # who is woken again and again has been tried
            self.cycle(100)
            self.drain()

    # ---- the naive recount

    def free(self, node: str) -> int:
        return self.nodes[node]["cpu"] - sum(pod["cpu"] for pod in self.pods.values() if pod["node"] == node)

    def overcommitted(self) -> list[str]:
        return [name for name in self.nodes if self.free(name) < 0]

    def waiting(self) -> dict[str, dict[str, Any]]:
        """Pods of ours that are not bound and not on their way out."""
        return {
            uid: pod
            for uid, pod in self.pods.items()
            if pod["scheduler"] == OURS and not pod["node"] and not pod["deleting"]
        }

    def fits_somewhere(self, pod: dict[str, Any]) -> bool:
        return any(self.free(name) >= pod["cpu"] for name, node in self.nodes.items() if not node["cordoned"])

    def must_fit(self, uid: str) -> bool:
        """Whether the waiting pod fits, alone or as one of a gang of two, however its mates are placed first."""
        gang = self.pods[uid]["labels"].get("gang")
        if not gang or any(pod["labels"].get("gang") == gang and pod["node"] for pod in self.pods.values()):
            return self.fits_somewhere(self.pods[uid])
        mates = [pod for pod in self.waiting().values() if pod["labels"].get("gang") == gang and not pod["gated"]]
        firsts = [(mate, name) for mate in mates for name in self.nodes if self._fits(mate, name)]
        return bool(firsts) and all(self._fits_beside(mates, first, name) for first, name in firsts)

    def _fits(self, pod: dict[str, Any], name: str) -> bool:
        return not self.nodes[name]["cordoned"] and self.free(name) >= pod["cpu"]

    def _fits_beside(self, mates: list[dict[str, Any]], first: dict[str, Any], name: str) -> bool:
        """Whether a mate fits once `first` stands on the node."""
        first["node"] = name
        try:
            return any(self.fits_somewhere(mate) for mate in mates if mate is not first)
        finally:
            first["node"] = ""

    def gang_size(self, gang: str) -> int:
        alive = (pod for pod in self.pods.values() if not pod["deleting"] or pod["node"])
        return sum(pod["labels"].get("gang") == gang and pod["scheduler"] == OURS for pod in alive)

    # ---- details

    def _carry_out(self, bind: Bind) -> BindSucceeded | BindFailed:
        pod = self.pods.get(bind.uid)
        if pod is None:
            return BindFailed(bind.uid, BindFailure.NOT_FOUND, "not found")
        if pod["node"] or pod["deleting"] or pod["gated"]:
            return BindFailed(bind.uid, BindFailure.CONFLICT, "assigned, deleting or gated")
        pod["node"] = bind.node
        self.bound_by_us.append(bind.uid)
        self._show(bind.uid)
        return BindSucceeded(bind.uid)

    def _take(self, actions: list[Action]) -> None:
        self.actions += actions
        self.posted.extend(action for action in actions if isinstance(action, Bind))
        self.on_the_way.update(bind.uid for bind in self.posted)
        self.reads.extend(action for action in actions if isinstance(action, ReadPod))
        self.evictions.extend(action for action in actions if isinstance(action, DeleteVictim))
        self.patches.extend(action for action in actions if isinstance(action, PatchPodCondition))

    def _pipes(self) -> bool:
        """Whether anything is on its way."""
        return any((self.watch, self.posted, self.reads, self.evictions, self.patches))

    def _arrive(self) -> None:
        """Something of each pipe."""
        self.deliver(100)
        self.answer_bind("succeeds")
        self.answer_read(fails=False)
        self.answer_eviction("succeeds")
        self.write_status()

    def _let_go(self, uid: str) -> None:
        del self.pods[uid]
        self.watch.append(PodDeleted("default", uid, uid))

    def _pick(self, number: int) -> str | None:
        return sorted(self.pods)[number % len(self.pods)] if self.pods else None

    def _show(self, uid: str) -> None:
        builder = self._next_version(self._builder(uid))
        self.pods[uid]["version"] = self._version
        self.watch.append(PodObserved(builder.build()))

    def _next_version(self, builder: B) -> B:
        self._version += 1
        return builder.version(self._version)

    def _builder(self, uid: str) -> PodBuilder:
        pod = self.pods[uid]
        builder = make_pod(uid).req(cpu=str(pod["cpu"])).labels(pod["labels"]).scheduler(pod["scheduler"])
        if pod["node"]:
            builder.node(pod["node"])
        if pod["gated"]:
            builder.gate("wait")
        if pod["deleting"]:
            builder.deleting(STUCK if pod["stuck"] else "2026-01-01T00:00:00Z")
        if pod["marked"]:
            builder.condition("DisruptionTarget", "True", "PreemptionByScheduler")
        return builder.priority(pod["priority"]).nominated(pod["nominated"])


def replayed(driver: Driver, other: Driver) -> list[Action]:
    """The actions of another scheduler that is shown what this one was shown."""
    found: list[Action] = []
    for now, message in driver.log:
        other.now = now
        found += other.send(message)
    return found
