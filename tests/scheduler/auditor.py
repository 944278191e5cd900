"""Watches the naive cluster's truth from outside and objects where an invariant is broken (faults.md).

I1 no pod bound twice · I2 no node overcommitted by us · I3 no pod lost · I4 no partial gang past its timeout ·
I9 every hard rule held when the decision was made. It reads dicts, never the scheduler.
"""

from __future__ import annotations

from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import PodDeleted
from tests.scheduler.world import World


class Auditor:
    """Look after every step; `partial` says since when each gang has been bound in part."""

    def __init__(self, world: World, timeout: float) -> None:
        self._world = world
        self._timeout = timeout
        self._decided = 0
        self.partial: dict[str, float] = {}

    def look(self) -> None:
        world = self._world
        assert len(world.bound_by_us) == len(set(world.bound_by_us)), "I1: a pod was bound twice"
        assert world.overcommitted() == [], "I2: a node is overcommitted"
        self._look_at_decisions()
        self._look_at_gangs()

    def _look_at_decisions(self) -> None:
        for bind in [one for one in self._world.actions if isinstance(one, Bind)][self._decided :]:
            self._decided += 1
            pod = self._world.pods.get(bind.uid)
            if pod is not None:
                assert not pod["gated"], f"I9: {bind.uid} was gated when it was decided on"

    def _look_at_gangs(self) -> None:
        now = self._world.driver.now
        partial = {gang for gang, (bound, minimum) in self.gangs().items() if 0 < bound < minimum}
        self.partial = {gang: self.partial.get(gang, now) for gang in partial}
        for gang, since in self.partial.items():
            assert now - since <= self._timeout, f"I4: gang {gang} is bound in part for {now - since:g} s"

    def answer(self, how: str) -> None:
        """The oldest binding is sent, if it still stands: a member's only while enough are bound or may be, as far as
        deletions were told."""
        world = self._world
        stands = bool(world.posted) and world.driver.state.may_bind(world.posted[0].uid)
        gang = world.pods.get(world.posted[0].uid, {"labels": {}})["labels"].get("gang") if stands else None
        if gang is not None and not any(isinstance(message, PodDeleted) for message in world.watch):
            members = {uid for uid, pod in world.pods.items() if pod["labels"].get("gang") == gang}
            count = sum(bool(world.pods[uid]["node"]) or uid in world.on_the_way for uid in members)
            assert count >= self.gangs()[gang][1], f"I4: {world.posted[0].uid} is sent beside {count - 1} of {members}"
        world.answer_bind(how if stands else "asks")

    def gangs(self) -> dict[str, tuple[int, int]]:
        """Gang -> how many of its pods are bound, and how many it takes."""
        found: dict[str, tuple[int, int]] = {}
        for pod in self._world.pods.values():
            gang = pod["labels"].get("gang")
            if gang:
                bound, minimum = found.get(gang, (0, 0))
                found[gang] = (bound + bool(pod["node"]), max(minimum, int(pod["labels"]["min"])))
        return found
