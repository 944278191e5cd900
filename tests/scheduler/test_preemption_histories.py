"""Random histories of pods with priorities on full nodes: nobody lost (I3), no node overcommitted (I2), and no node
kept clear for a pod that is gone, whatever becomes of the victims (faults.md, 25)."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.framework.profile import QueueSettings
from policyengine.scheduler.actions import Action, DeleteVictim, PatchPodCondition
from policyengine.scheduler.messages import PodDeleted, PodObserved, VictimDeleted, VictimNotDeleted
from tests.builders import PodBuilder
from tests.scheduler.driver import Driver, profile
from tests.scheduler.world import OURS, World, replayed

SOON = QueueSettings(flush_after=60.0)
"""Who waits for a victim that never dies is looked at again soon."""
STUCK = "1970-01-01T00:16:40Z"
"""When the victims that never die should have gone: in the second in which a history begins."""


class PreemptingWorld(World):
    """Pods have priorities, victims are asked to go, and kubelets let go of them late, or never."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self.evictions: deque[DeleteVictim] = deque()
        self.patches: deque[PatchPodCondition] = deque()

    def create_pod(
        self, cpu: int, gang: str = "", gated: bool = False, scheduler: str = OURS, priority: int = 0
    ) -> None:
        super().create_pod(cpu, gang, gated, scheduler)
        uid = f"p{self._count}"
        self.watch.pop()
        self.pods[uid] |= {"priority": priority, "stuck": False, "marked": False, "nominated": ""}
        self._show(uid)

    def create_pod_of(self, team: str, cpu: int, priority: int) -> None:
        self.create_pod(cpu, priority=priority)
        self.watch.pop()
        uid = f"p{self._count}"
        self.pods[uid]["labels"] = {"team": team}
        self._show(uid)

    def create_important_pod(self, cpu: int, priority: int) -> None:
        self.create_pod(cpu, priority=priority)

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
                self.let_go(asked.uid)
        lost = how == "lost"
        self.send(VictimNotDeleted(asked, "timed out") if lost else VictimDeleted(asked, was_there))

    def let_go(self, uid: str) -> None:
        """The kubelet has ended a pod that is being deleted."""
        del self.pods[uid]
        self.watch.append(PodDeleted("default", uid, uid))

    def kubelet(self) -> None:
        for uid in [uid for uid, pod in self.pods.items() if pod["deleting"] and not pod["stuck"]]:
            self.let_go(uid)

    def write_status(self) -> None:
        """The oldest nomination reaches the server."""
        if self.patches:
            patch = self.patches.popleft()
            if patch.uid in self.pods and patch.nominated_node_name is not None:
                self.pods[patch.uid]["nominated"] = patch.nominated_node_name
                self._show(patch.uid)

    def reappear(self, priority: int) -> None:
        """A controller makes up for what was evicted."""
        self.create_pod(3, priority=priority)

    def settle(self) -> None:
        self.land_late()
        for _ in range(12):
            self.wait(31.0)
            for _ in range(4):
                self.cycle(100)
                self._drain()
                self.kubelet()
                self.deliver(100)

    def _drain(self) -> None:
        while self.watch or self.posted or self.reads or self.evictions or self.patches:
            self.deliver(100)
            self.answer_bind("succeeds")
            self.answer_read(fails=False)
            self.answer_eviction("succeeds")
            self.write_status()

    def _take(self, actions: list[Action]) -> None:
        super()._take(actions)
        self.evictions.extend(action for action in actions if isinstance(action, DeleteVictim))
        self.patches.extend(action for action in actions if isinstance(action, PatchPodCondition))

    def _builder(self, uid: str) -> PodBuilder:
        pod: dict[str, Any] = self.pods[uid]
        builder = super()._builder(uid).priority(pod.get("priority", 0)).nominated(pod.get("nominated", ""))
        if pod["deleting"]:
            builder.deleting(STUCK if pod["stuck"] else "2026-01-01T00:00:00Z")
        if pod.get("marked"):
            builder.condition("DisruptionTarget", "True", "PreemptionByScheduler")
        return builder


NUMBERS = st.integers(0, 7)
steps = st.one_of(
    st.tuples(st.just("create_important_pod"), st.integers(1, 4), st.integers(0, 3)),
    st.tuples(st.just("create_important_pod"), st.integers(3, 6), st.integers(1, 3)),
    st.tuples(st.just("delete_pod"), NUMBERS, st.booleans()),
    st.tuples(st.just("reappear"), st.integers(0, 1)),
    st.tuples(st.sampled_from(["deliver", "deliver", "cycle"]), st.just(100)),
    st.tuples(st.just("cycle"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 7.0, 330.0])),
    st.tuples(st.just("answer_bind"), st.sampled_from(["succeeds", "succeeds", "asks", "refused", "lost and late"])),
    st.tuples(st.just("answer_eviction"), st.sampled_from(["succeeds", "succeeds", "refused", "lost", "never dies"])),
    st.tuples(st.sampled_from(["write_status", "write_status", "kubelet", "land_late"])),
    st.tuples(st.just("answer_read"), st.booleans()),
    st.tuples(st.just("set_node"), st.sampled_from(["n1", "n2"]), st.integers(4, 6), st.booleans()),
)


def run(history: list[tuple[Any, ...]]) -> PreemptingWorld:
    world = PreemptingWorld(Driver(profile(queue=SOON)))
    for number, name in enumerate(["n1", "n2"]):
        world.set_node(name, 4 + number, cordoned=False)
    for cpu in (2, 2, 3, 2):
        world.create_pod(cpu)
    world.deliver(100)
    world.cycle(100)
    return world.play(history)


def assert_nobody_is_lost(world: PreemptingWorld) -> None:
    state = world.driver.state
    for uid, pod in world.waiting().items():
        timeline = [str(line) for line in state.timeline(uid)]
        assert state.place(uid) == "unschedulable", f"{uid} is {state.place(uid)}"
        assert not world.fits_somewhere(pod), f"{uid} fits and waits: {timeline}"


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=20, max_size=60))
def test_nobody_is_lost_nothing_overcommitted_and_no_nomination_outlives_its_pod(history: list[Any]) -> None:
    world = run(history)
    for name, cpu in (("n1", 6), ("n2", 6)):
        world.set_node(name, cpu, cordoned=False)
    world.settle()
    assert world.overcommitted() == []
    assert len(world.bound_by_us) == len(set(world.bound_by_us))
    assert_nobody_is_lost(world)
    assert world.driver.state.view.nominated == {}
    shown = {uid: pod["nominated"] for uid, pod in world.waiting().items() if pod["nominated"]}
    assert shown == {}


@settings(max_examples=20, deadline=None)
@given(st.lists(steps, min_size=20, max_size=60))
def test_the_same_log_gives_the_same_actions(history: list[Any]) -> None:
    world = run(history)
    assert replayed(world.driver, Driver(profile(queue=SOON), synced=False)) == world.actions


def test_a_pod_that_comes_back_under_its_victim_s_priority_does_not_take_the_room() -> None:
    world = PreemptingWorld(Driver())
    world.set_node("n1", 4, cordoned=False)
    world.create_pod(4)
    world.settle()
    world.create_important_pod(4, 2)
    world.deliver(100)
    world.cycle(100)
    world.answer_eviction("succeeds")
    world.reappear(0)
    world.settle()
    bound = {uid for uid, pod in world.pods.items() if pod["node"]}
    assert bound == {"p2"}
    assert any(isinstance(message, PodObserved) for _, message in world.driver.log)
