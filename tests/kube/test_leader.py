"""Leader election: one replica binds, another takes over in time, and nobody acts on a lease that may have ended."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from policyengine.kube.http.client import Client
from policyengine.kube.leader import LeaderElector, LeadershipLost, LeaseSettings
from policyengine.kube.leaders_transport import LeadersTransport, NotLeading
from policyengine.kube.scheduling import Scheduler
from policyengine.plugins.registry import default_profile
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.memory import MemoryTransport
from policyengine.simulator.sandbox import create
from tests.faulty_server import effects as fault
from tests.kube import scenes
from tests.kube.scenes import PODS, pod
from tests.kube.virtual_time import VirtualClock
from tests.shared_facts import shared

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Replica:
    """One scheduler process."""

    def __init__(self, api: ApiServer, name: str, seed: int) -> None:
        self.clock = VirtualClock()
        """Its own: it may be wrong, and it may be set."""
        transport = MemoryTransport(api, user_agent=name)
        self.elector = LeaderElector(Client(transport), self.clock, random.Random(seed), name)
        self.scheduler = Scheduler(
            Client(LeadersTransport(transport, self.elector)),
            self.clock,
            random.Random(seed),
            [default_profile()],
            host=name,
            elector=self.elector,
        )
        self.stop = asyncio.Event()
        self.task = asyncio.ensure_future(self.scheduler.run(self.stop))

    async def kill(self) -> None:
        """End it as a power cut does: nothing more is said."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def end(self) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, 60)


class World(scenes.World):
    def __init__(self) -> None:
        super().__init__()
        self.replicas: list[Replica] = []

    def start(self, name: str) -> Replica:
        replica = Replica(self.api, name, len(self.replicas))
        self.replicas.append(replica)
        return replica

    async def pod(self, name: str) -> None:
        await create(self.outside, PODS, pod(name))

    async def lease(self) -> Any:
        return (await self.call("GET", f"{LEASES}/policyengine"))["spec"]

    async def hold(self, holder: str, seconds: int = 15) -> Any:
        """The lease in a stranger's hand, who never renews it."""
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 4}
        return await self.call("POST", LEASES, {"metadata": {"name": "policyengine"}, "spec": spec})

    def bound(self) -> list[tuple[str, str]]:
        """(who, pod) of every binding that was made."""
        return [(one.user_agent, one.name) for one in self.api.writes if one.subresource == "binding"]

    async def when_bound(self, name: str) -> float:
        while name not in [pod for _, pod in self.bound()]:  # noqa: ASYNC110  (polled on virtual time)
            await asyncio.sleep(0.05)
        return self.clock.monotonic()


async def play(work: Callable[[World], Awaitable[None]]) -> None:
    world = World()
    await world.nodes(1)
    try:
        await work(world)
        assert max(Counter(pod for _, pod in world.bound()).values(), default=0) <= 1
    finally:
        for replica in world.replicas:
            with suppress(LeadershipLost):
                await replica.kill()


scene = scenes.scene_of(play)


@scene
async def test_the_lease_is_written_as_kube_scheduler_writes_it(world: World) -> None:
    calls = json.loads(shared("recorded/scheduler-calls.json").read_text())
    theirs = [call["request"] for call in calls if "/leases" in call["uri"] and call["request"]][:3]
    sent: list[tuple[str, Any]] = []
    transport = MemoryTransport(world.api)

    class Noting:
        async def request(self, method: str, path: str, **how: Any) -> Any:
            if how.get("body"):
                sent.append((method, json.loads(how["body"])))
            return await transport.request(method, path, **how)

        async def close(self) -> None: ...

    elector = LeaderElector(Client(Noting()), world.clock, random.Random(1), "host_id")
    task = asyncio.ensure_future(elector.run())
    await asyncio.sleep(5)
    task.cancel()
    assert [method for method, _ in sent] == ["POST", "PUT", "PUT"]
    for (_, ours), recorded_one in zip(sent, theirs, strict=True):
        assert ours.keys() == recorded_one.keys()
        assert ours["metadata"].keys() == recorded_one["metadata"].keys()
        assert {key: type(value) for key, value in ours["spec"].items()} == {
            key: type(value) for key, value in recorded_one["spec"].items()
        }
        assert len(ours["spec"]["renewTime"]) == len(recorded_one["spec"]["renewTime"])
    assert sent[2][1]["spec"]["acquireTime"] == sent[0][1]["spec"]["acquireTime"]


@scene
async def test_a_follower_fills_its_caches_and_binds_nothing(world: World) -> None:
    world.start("first")
    await asyncio.sleep(1)
    second = world.start("second")
    for number in range(5):
        await world.pod(f"p{number}")
    await asyncio.sleep(30)
    assert {who for who, _ in world.bound()} == {"first"}
    assert second.scheduler.runner.synced.is_set()
    assert len(second.scheduler.state.view.pods) == 5
    assert not [one for one in world.api.writes if one.user_agent == "second"]


@pytest.mark.parametrize(
    ("written", "holder"),
    [({"renewTime": "2026-01-05T09:00:00.000000Z"}, ""), ({"holderIdentity": "b"}, "b")],
    ids=["by a last renewal whose answer was never read", "by somebody else who holds it now"],
)
@scene
async def test_at_the_end_a_lease_that_was_written_since_is_given_back_by_its_holder_alone(
    world: World, written: dict[str, str], holder: str
) -> None:
    replica = world.start("a")
    await replica.elector.elected.wait()
    lease = await world.call("GET", f"{LEASES}/policyengine")
    await world.call("PUT", f"{LEASES}/policyengine", {**lease, "spec": lease["spec"] | written})
    await replica.end()
    assert (await world.lease())["holderIdentity"] == holder


@scene
async def test_a_clean_stop_gives_the_lease_back_after_the_last_binding(world: World) -> None:
    first = world.start("first")
    await asyncio.sleep(1)
    world.start("second")
    await asyncio.sleep(5)
    world.api.faults.add(fault.Delay(3.0), subresource="binding", client="first")
    await world.pod("p")
    await asyncio.sleep(0.5)
    await first.end()
    stopped = world.clock.monotonic()
    verbs = [one.subresource or one.kind for one in world.api.writes if one.user_agent == "first"]
    assert verbs[-1] == "Lease" and "binding" in verbs
    await world.pod("q")
    assert await world.when_bound("q") - stopped < 3
    assert dict(map(reversed, world.bound())) == {"p": "first", "q": "second"}


@scene
async def test_a_leader_that_cannot_renew_stops_binding_at_its_deadline_and_ends(world: World) -> None:
    first = world.start("first")
    await asyncio.sleep(3)
    world.api.faults.add(fault.Fail(statuses.internal("down")), resource="leases", client="first", times=None)
    cut = world.clock.monotonic()
    while not first.task.done():
        await world.pod(f"p{world.clock.monotonic():.1f}".replace(".", "-"))
        await asyncio.sleep(0.5)
    assert 8 <= world.clock.monotonic() - cut <= 12.5
    with pytest.raises(LeadershipLost, match="was not renewed within 10 s"):
        first.task.result()


@scene
async def test_clocks_that_are_set_change_nothing(world: World) -> None:
    first = world.start("first")
    await asyncio.sleep(1)
    second = world.start("second")
    second.clock.wall_offset += 86_400
    await asyncio.sleep(20)
    first.clock.wall_offset -= 3_600
    await asyncio.sleep(60)
    assert first.elector.holds() and not second.elector.holds()


@scene
async def test_a_strangers_lease_is_waited_for_and_taken_when_it_does_not_change(world: World) -> None:
    await world.hold("stranger", seconds=30)
    began = world.clock.monotonic()
    replica = world.start("ours")
    await world.pod("p")
    assert 30 <= await world.when_bound("p") - began < 33
    assert (await world.lease())["leaseTransitions"] == 5
    assert replica.elector.holder == "ours"


@scene
async def test_a_lease_whose_transitions_can_be_counted_no_further_is_taken_all_the_same(world: World) -> None:
    most = 2**31 - 1
    lease = await world.hold("stranger")
    lease["spec"]["leaseTransitions"] = most
    await world.call("PUT", f"{LEASES}/policyengine", lease)
    replica = world.start("a")
    await asyncio.wait_for(replica.elector.elected.wait(), 30)
    assert (await world.lease())["leaseTransitions"] == most


@scene
async def test_a_lease_taken_away_by_hand_ends_the_leader(world: World) -> None:
    first = world.start("first")
    await asyncio.sleep(3)
    lease = await world.call("GET", f"{LEASES}/policyengine")
    lease["spec"]["holderIdentity"] = "stranger"
    await world.call("PUT", f"{LEASES}/policyengine", lease)
    with pytest.raises(LeadershipLost, match="is held by `stranger`"):
        await asyncio.wait_for(first.task, 5)


@pytest.mark.parametrize(
    "effect", [fault.Drop(after=True), fault.Drop(), fault.Delay(100.0, after=True)], ids=["lost", "cut", "late"]
)
@scene
async def test_a_lost_answer_costs_no_leadership(world: World, effect: fault.Effect) -> None:
    world.api.faults.add(effect, resource="leases", verb="update", times=1)
    world.api.faults.add(effect, resource="leases", verb="create", times=1)
    replica = world.start("ours")
    await asyncio.sleep(60)
    assert replica.elector.holds()
    assert (await world.lease())["leaseTransitions"] == 0


@scene
async def test_an_answer_that_never_comes_costs_no_leadership_though_half_the_time_was_spent_on_it(
    world: World,
) -> None:
    """What was waited for it is not waited once more."""
    tight = LeaseSettings(lease_duration=3.0, renew_deadline=2.0, retry_period=0.5)
    client = Client(MemoryTransport(world.api))
    elector = LeaderElector(client, world.clock, random.Random(1), "ours", tight)
    leading = asyncio.ensure_future(elector.run())
    for _ in range(3):
        await asyncio.sleep(4)
        world.api.faults.add(fault.Delay(100.0), resource="leases", verb="update", times=1)
    await asyncio.sleep(4)
    assert elector.holds() and not leading.done()
    leading.cancel()


@scene
async def test_only_a_leader_changes_anything(world: World) -> None:
    transport = MemoryTransport(world.api)
    elector = LeaderElector(Client(transport), world.clock, random.Random(0), "x")
    client = Client(LeadersTransport(transport, elector))
    with pytest.raises(NotLeading) as refused:
        await client.bind("default", "p", "uid", "node-1", {})
    assert not refused.value.sent
    with pytest.raises(NotLeading):
        await client.patch_pod_status("default", "p", {})
