"""Worlds in which nodes flap between ready and not, their taints follow late, and the leader is stopped under load.

No event is kept back for good, and the world is over long before the periodic flush: every pod that fits is bound by
then. Where one is not, a wake-up was lost. So that no later event makes up for a lost one, most pods can stand
on one node only, and each node's last taint goes in the midst of everything, at a time of its own.
"""

from __future__ import annotations

import asyncio
from random import Random

from policyengine.simulator.api_server import statuses
from tests.faults.wire import Wire
from tests.faults.world import World
from tests.faulty_server import effects

FIRST_SEED = 60_000
"""From this seed on a world is one of these."""
COUNT = 6
LASTS = 45.0
SOON = 110.0
"""Seconds that a pod may wait in peace: a lease, a binding of open outcome, a backoff; less than the flush takes."""
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"

BINDINGS = {"verb": "create", "resource": "pods", "subresource": "binding"}
CONDITIONS = {"verb": "patch", "resource": "pods", "subresource": "status"}
WATCHES = {"verb": "watch"}
FAULTS = (
    (WATCHES, effects.Cut()),
    (WATCHES, effects.Duplicate()),
    (WATCHES, effects.Expire()),
    (BINDINGS, effects.Delay(0.5)),
    (BINDINGS, effects.Delay(5.0, after=True)),
    (BINDINGS, effects.Drop(after=True)),
    (BINDINGS, effects.Fail(statuses.ApiError(409, "", "no"))),
    (BINDINGS, effects.Fail(statuses.internal("etcd is slow"))),
    (CONDITIONS, effects.Delay(2.0)),
    (CONDITIONS, effects.Overload(1)),
)


class Flapping:
    """What happens in the world of a seed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = Random(world.seed)
        self.made = 0
        self.names: list[str] = []

    async def play(self) -> None:
        world, random = self.world, self.random
        for number in range(COUNT):
            await world.node(f"n{number}", random.choice(("2", "4")))
        for name in ("scheduler-a", "scheduler-b"):
            world.start(name)
        await asyncio.sleep(random.choice((0.0, 0.03, 3.0)))
        stops = sorted(random.uniform(0.1, 0.7) * LASTS for _ in range(random.choice((0, 1, 2))))
        flapping = [asyncio.ensure_future(self.a_node_that_flaps(f"n{number}")) for number in range(COUNT)]
        while world.clock.monotonic() < LASTS:
            await random.choice((self.some_pods, self.some_pods, self.fewer, self.a_fault, self.a_fault))()
            await asyncio.sleep(random.choice((0.0, 0.01, 0.3, 2.0)))
            if stops and world.clock.monotonic() > stops[0]:
                del stops[0]
                self.a_stop()
            self.replace_the_ended()
        await asyncio.gather(*flapping)
        await self.calm_down()

    # ---- users and controllers

    async def some_pods(self) -> None:
        for _ in range(self.random.choice((1, 2, 4))):
            self.made += 1
            self.names.append(f"p{self.made}")
            only = {"kubernetes.io/hostname": f"n{self.random.randrange(COUNT)}"} if self.random.random() < 0.8 else {}
            await self.world.pod(self.names[-1], self.random.choice(("10m", "10m", "250m")), nodeSelector=only)

    async def fewer(self) -> None:
        for name in self.random.sample(self.names, min(len(self.names), self.random.choice((1, 3)))):
            self.names.remove(name)
            await self.world.delete(name)

    async def a_node_that_flaps(self, name: str) -> None:
        """Its condition changes, and its taints as they would by kube-controller-manager, which is late."""
        random = Random(f"{self.world.seed} {name}")
        ends = random.uniform(0.5, 1.0) * LASTS
        while self.world.clock.monotonic() < ends:
            await self.becomes(name, random.choice(("False", "Unknown")), random.choice((0.0, 0.05, 1.0, 5.0)))
            await asyncio.sleep(random.choice((0.0, 0.02, 0.5, 4.0)))
            await self.becomes(name, "True", random.choice((0.0, 0.05, 1.0, 5.0)))
            await asyncio.sleep(random.choice((0.0, 0.3, 3.0, 10.0)))

    async def becomes(self, name: str, ready: str, lag: float) -> None:
        condition = {"type": "Ready", "status": ready, "reason": "Kubelet"}
        await self.world.patch_node(name, {"status": {"conditions": [condition]}}, status=True)
        await asyncio.sleep(lag)
        key = NOT_READY if ready == "False" else UNREACHABLE
        taints = [{"key": key, "effect": effect} for effect in ("NoSchedule", "NoExecute")] if ready != "True" else []
        for some in (taints[:1], taints) if taints else ([],):
            await self.world.patch_node(name, {"spec": {"taints": some or None}})

    # ---- faults

    async def a_fault(self) -> None:
        where, effect = self.random.choice(FAULTS)
        more = {"resource": self.random.choice(("pods", "nodes"))} if where is WATCHES else {}
        times = self.random.choice((1, 3))
        self.world.faults.add(effect, **where, **more, client="scheduler", times=times, seconds=10.0)

    def a_stop(self) -> None:
        """The leader, mostly, or the other stands still: shorter than its lease, or longer, and then it ends."""
        running = [one for one in self.world.replicas if not one.task.done()]
        leaders = [one for one in running if one.leads]
        if leaders and self.random.random() < 0.8:
            running = leaders
        if running:
            self.world.beside(self._stop(self.random.choice(running).wire, self.random.choice((1.0, 6.0, 30.0))))

    async def _stop(self, wire: Wire, seconds: float) -> None:
        wire.flows.clear()
        await asyncio.sleep(seconds)
        wire.flows.set()

    def replace_the_ended(self) -> None:
        for replica in [one for one in self.world.replicas if one.task.done() and not one.why_ended()]:
            self.world.replicas.remove(replica)
            self.made += 1
            self.world.start(f"{replica.name.partition('.')[0]}.{self.made}")

    # ---- the end

    async def calm_down(self) -> None:
        """Everybody runs, and nothing happens any more."""
        for replica in self.world.replicas:
            replica.wire.flows.set()
        self.world.faults.clear()
        await asyncio.sleep(20)
        self.replace_the_ended()
        await self.world.settle(SOON)
