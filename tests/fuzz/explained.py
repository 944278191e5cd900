"""`explain` names for every pod what the scheduler then does: random worlds, of which the objects are listed and
forecast; then the scheduler itself, core, runner and watches, goes on against the embedded API server on virtual time.

`python -m tests.fuzz.seeds explained N SEED` plays N worlds.

What the forecast does not claim is left out: all pods that wait were made in one second, so that a queue has them in
one order whether it has just heard of them or not, and no scheduler has anything about them in its memory.

Where a pod is evicted at the moment at which it was placed, its binding and its deletion are two requests on their way
at once. If the deletion comes first the pod has no grace, and who gets its room, and when, may be otherwise. The
forecast has the binding come first. Of what it tells in such a world, pods bound by then are compared, and what does
not depend on room.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from math import inf
from random import Random
from typing import Any

from policyengine.cluster.objects import parse_time
from policyengine.diagnosis.dump import DumpedObject
from policyengine.diagnosis.forecast import Fate, Forecast, PodForecast, played
from policyengine.framework.profile import Profile
from policyengine.kube.http.client import Client
from policyengine.kube.listing import list_cluster, list_policies
from policyengine.kube.policies.serving import serving
from policyengine.plugins.registry import IN_TREE
from policyengine.scheduler.conditions_and_events import cut
from policyengine.scheduler.state import SchedulerState
from policyengine.simulator.api_server.memory import MemoryTransport
from tests.faults.objects import PODS
from tests.faults.world import World, play, profiles_of

Json = dict[str, Any]
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PRIORITIES = (3, 10)
SETTLES = 45.0
"""Seconds in which a first batch of pods finds its places."""
SPARE = 30.0
"""Seconds that the scheduler has beyond those that the forecast took: it sleeps, and its requests take time."""

GANG = """
  gang "crew" when pod.labels[?"podGroup"].hasValue() {
    key: pod.labels["podGroup"]
    min: toInt(pod.labels[?"minAvailable"]).orValue(1)
    timeout: 30s
  }"""
QUOTAS = """
  quota "red" when pod.labels[?"team"].orValue("") == "red" { guarantee: {cpu: 2} limit: {cpu: 3} borrow: true }
  quota "blue" when pod.labels[?"team"].orValue("") == "blue" { limit: {cpu: 2} }"""
PERMITS = """
  permit "short" when pod.labels[?"hold"].orValue("") == "short" { delay: 4s }
  permit "long" when pod.labels[?"hold"].orValue("") == "long" { delay: 14min }"""
PREEMPT = """
  preempt when pod.priority > 5 { victims: victim.labels[?"team"].orValue("") != "blue" order by victim.priority }"""
QUEUES = (
    "",
    "\n  queue { order by pod.priority desc, pod.name }",
    '\n  queue { fair by pod.labels[?"team"].orValue("none") }',
    '\n  queue { order by toInt(pod.labels[?"rank"]).orValue(0) desc }',
)
SCORES = (
    "",
    '\n  score "packed" weight 5 = 100 * ratio(node.used.cpu, node.allocatable.cpu)',
    '\n  score "even" weight 3 = 100 * ratio(node.free.cpu, node.allocatable.cpu)',
)
FILTERS = ("", '\n  filter "roomy" { require node.podCount < 4 else "{node.name} has {node.podCount} pods" }')


def policy(random: Random, name: str) -> str:
    """A policy of some members."""
    parts = [GANG if random.random() < 0.8 else "", QUOTAS if random.random() < 0.5 else ""]
    parts += [PERMITS if random.random() < 0.3 else "", PREEMPT if random.random() < 0.3 else ""]
    parts += [random.choice(QUEUES), random.choice(SCORES), random.choice(FILTERS)]
    return f'policy "{name}" {{\n  scheduler "{name}"{"".join(parts)}\n}}\n'


class Scene:
    """One world of a seed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = Random(f"explained {world.seed}")
        self.made = 0
        self.differences: list[str] = []
        self.forecast: Forecast | None = None
        self.certain_until = inf
        """Seconds from the forecast."""
        self.is_by_config_map = self.random.random() < 0.3

    async def __call__(self) -> None:
        world, random = self.world, self.random
        for number in range(random.randint(1, 4)):
            await world.node(f"n{number}", random.choice(("1", "2", "4", "6")))
        for value in PRIORITIES:
            kind = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": f"p{value}"}}
            await self._made(CLASSES, kind | {"value": value})
        world.beside(self._kubelets())
        if self.is_by_config_map:
            await world.config_map("second", policy(random, "theirs"))
        replica = world.start()
        await self._pods(random.randint(3, 12))
        await asyncio.sleep(SETTLES)
        await replica.kill()
        await self._remove_waiting()
        await self._trouble()
        await self._pods(random.randint(4, 14), may_be_odd=True)
        objects, profiles = await self._asked()
        now = world.clock.now()
        self.forecast, foreseen = played(objects, profiles, now)
        self.certain_until = _race(self.forecast, foreseen) - now
        after = world.start("scheduler-b")
        await asyncio.sleep(self.forecast.seconds + SPARE)
        places = await self._by_name()
        certain = filter(self._is_certain, self.forecast.pods)
        self.differences = [
            line for one in certain if (line := self._difference(one, places.get(one.pod), after.state))
        ]

    async def _pods(self, count: int, may_be_odd: bool = False) -> None:
        random = self.random
        while count > 0:
            size = random.choice((1, 1, 1, 2, 3, 4))
            labels = {"team": random.choice(("red", "blue", "none")), "rank": random.choice("012")}
            if random.random() < 0.2:
                labels["hold"] = random.choice(("short", "long"))
            if size > 1:
                labels |= {
                    "podGroup": f"g{self.made}",
                    "minAvailable": str(random.choice((size, size, size, size, size + 1, 2))),
                }
            priority = random.choice((0, 0, 3, 10) if may_be_odd else (0, 0, 0, 3))
            spec: Json = {"priority": priority, "priorityClassName": f"p{priority}"} if priority else {}
            spec["schedulerName"] = random.choice(("ours", "ours", "ours", "theirs"))
            if may_be_odd:
                spec |= random.choice((*[{}] * 12, {"schedulerName": "ors"}, {"schedulingGates": [{"name": "g"}]}))
            if random.random() < 0.1:
                spec["nodeSelector"] = {"kubernetes.io/hostname": f"n{random.randrange(4)}"}
            for _ in range(size):
                await self._pod(labels, spec)
            count -= size

    async def _pod(self, labels: Json, spec: Json) -> None:
        self.made += 1
        cpu = self.random.choice(("250m", "500m", "1", "2"))
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        item = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"p{self.made:02}", "labels": labels}}
        await self._made(PODS, item | {"spec": {**spec, "containers": [container]}})

    async def _made(self, path: str, item: Json) -> None:
        answer = await self.world.call("POST", path, item)
        assert answer.get("kind") == item["kind"], answer

    async def _remove_waiting(self) -> None:
        for key, item in (await self._by_name()).items():
            if not item["spec"].get("nodeName"):
                await self.world.delete(key.partition("/")[2])

    async def _trouble(self) -> None:
        """What happens while no scheduler looks."""
        world, random = self.world, self.random
        for item in (await self._by_name()).values():
            if random.random() < 0.3:
                await world.delete(item["metadata"]["name"])
        if random.random() < 0.2:
            await world.patch_node("n0", {"spec": {"unschedulable": True}})
        if random.random() < 0.2:
            await world.patch_node("n0", {"spec": {"taints": [{"key": "away", "effect": "NoSchedule"}]}}, False)
        if random.random() < 0.3:
            await world.node("late", random.choice(("1", "3")))

    async def _asked(self) -> tuple[list[DumpedObject], list[Profile]]:
        """What `explain` reads of the cluster."""
        client = Client(MemoryTransport(self.world.api, user_agent="explain"))
        sources, left_out = await list_policies(client)
        found = serving(sources, IN_TREE)
        assert not left_out and not found.refused, (left_out, found.refused)
        profiles = [*profiles_of(self.world.policy), *found.profiles]
        listed = await list_cluster(client, profiles)
        assert not listed.left_out, listed.left_out
        return [DumpedObject(kind, item) for kind, item in listed.objects], profiles

    async def _by_name(self) -> dict[str, Json]:
        items = (await self.world.call("GET", PODS))["items"]
        return {f"{item['metadata']['namespace']}/{item['metadata']['name']}": item for item in items}

    async def _kubelets(self) -> None:
        """They end what is being deleted on their nodes, once its grace is over."""
        while True:
            await asyncio.sleep(0.5)
            now = self.world.clock.now()
            for item in (await self._by_name()).values():
                end = parse_time(item["metadata"].get("deletionTimestamp"))
                if item["spec"].get("nodeName") and end is not None and end <= now:
                    await self.world.delete(item["metadata"]["name"])

    def _is_certain(self, told: PodForecast) -> bool:
        if self.certain_until == inf or told.what in (Fate.UNSERVED, Fate.GATED):
            return True
        return told.what is Fate.BOUND and told.after <= self.certain_until

    def _difference(self, told: PodForecast, item: Json | None, state: Any) -> str:
        """What the scheduler did otherwise; empty where it did what was told."""
        if item is None:
            return (
                "" if told.what is Fate.EVICTED else f"{told.pod}: told {told.what.value} {told.node}, and it is gone"
            )
        node = item["spec"].get("nodeName", "")
        if told.what is Fate.BOUND:
            return "" if node == told.node else f"{told.pod}: told → {told.node}, is on {node or _message(item)}"
        if node:
            return f"{told.pod}: told {told.what.value} {told.message}, and is on {node}"
        place = state.place(item["metadata"]["uid"])
        lines = {line.what for line in state.timeline(item["metadata"]["uid"])}
        said = {
            # A permit, or a gang, may have it wait and then refuse it, again and again.
            Fate.WAITING: place == "waiting at permit" or bool(lines & {"waiting", "reserved"}),
            Fate.UNSERVED: place == "unserved",
            Fate.GATED: place == "gated",
            Fate.HELD: place == "held" and _message(item) == told.message,
            Fate.UNSCHEDULABLE: _said(_message(item)) == _said(told.message),
        }
        if said.get(told.what, False):
            return ""
        return f"{told.pod}: told {told.what.value} {told.message!r}, is {place} {_message(item)!r}"


def _race(told: Forecast, state: SchedulerState) -> float:
    """When a pod was first placed and evicted at one moment, in seconds since the epoch; inf if none was."""
    timelines = ({line.what: line.at for line in state.timeline(one.uid)} for one in told.pods)
    return min((at["bound"] for at in timelines if "bound" in at and at["bound"] == at.get("preempted")), default=inf)


def _message(item: Json) -> str:
    conditions = item.get("status", {}).get("conditions", [])
    return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")


def _said(message: str) -> str:
    """As far as a condition has room. Which member of a gang is quoted, and how many had room before it, depends on
    whose turn it was when the gang was tried last; others wake it now and then in vain."""
    gang = re.match(r"gang \w+: room for|gang \w+: \d+ of the", message)
    return gang[0] if gang else cut(message)


def tried(seed: int) -> tuple[list[str], Counter[str]]:
    """How the scheduler differed from the forecast in the world of a seed, what was forecast, and whether not all of
    it was compared."""
    random = Random(f"policies {seed}")
    scenes: list[Scene] = []

    async def scene(world: World) -> None:
        scenes.append(Scene(world))
        await scenes[0]()

    text = policy(random, "ours") + ("" if Random(f"explained {seed}").random() < 0.3 else policy(random, "theirs"))
    play(scene, seed=seed, policy=text, validates=False)
    found = scenes[0].forecast
    assert found is not None
    counts = Counter(one.what.value for one in found.pods)
    counts.update({"worlds": 1, "victims": len(found.evicted), "compared in part": scenes[0].certain_until < inf})
    return [f"world {seed}: {line}" for line in scenes[0].differences], counts
