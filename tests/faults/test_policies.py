"""Faults 23, 24 and 26 to 28: gangs, policies that change, extenders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from random import Random
from typing import Any

import pytest

from policyengine.kube.config import configuration
from policyengine.kube.extenders import http_extender
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.http.aiohttp_transport import AiohttpResponse
from policyengine.kube.http.client import Response, TimedOut
from policyengine.kube.policies.precedence import Precedence
from policyengine.scheduler import policy_changes
from policyengine.scheduler.gangs import gang_cycle
from policyengine.scheduler.messages import BindFailure
from policyengine.scheduler.profiles import ProfileRuntime, ServedProfiles
from policyengine.scheduler.queue.gang_table import GangTable
from policyengine.scheduler.reservations import WaitingPods
from policyengine.simulator.api_server import statuses
from tests.faults.actors import drain, kubelets, meanwhile
from tests.faults.defence import fault
from tests.faults.objects import CRD, CRDS, MAPS, MERGE, PODS, POLICIES
from tests.faults.test_bindings import BINDINGS, READS, not_minding
from tests.faults.world import World, play
from tests.faulty_server import effects

PIN = """policy "pin" {{
  scheduler "pinned"
  filter "there" {{ require node.name == "{node}" }}
}}
"""


@fault(
    23,
    "I4",
    defence="a member whose binding failed is given back and tried again beside its mates; a gang that is short of "
    "members holds nothing (`scheduler/binding/bind_result.py`, `scheduler/gangs/gang_release.py`)",
    taken_out="a refused binding is left as it is",
    without=not_minding(BindFailure.REFUSED),
)
async def test_23_one_binding_of_a_gang_fails_and_a_member_is_deleted(world: World) -> None:
    await world.starts_with(n1="2", n2="2")
    world.faults.add(effects.Fail(statuses.ApiError(422, "Invalid", "no")), **BINDINGS, skip=2)
    for number in range(3):
        await world.pod(f"a{number}", gang="a", least=3)
    await asyncio.sleep(30)
    await world.pod("b0", "500m", gang="b", least=2)
    await asyncio.sleep(1)
    await world.pod("b1", "500m", gang="b", least=2)
    await world.delete("b1")
    await asyncio.sleep(40)
    await world.settle()


def placing_one_by_one_and_waiting_for_ever(patch: Any) -> None:
    patch.setattr(gang_cycle, "needed", lambda core, gang: 0)
    patch.setattr(WaitingPods, "due", lambda self, now: [])


@fault(
    24,
    "I3 I4",
    defence="as many members as a gang takes are placed together, or none, and who waits for mates waits no longer "
    "than the gang's timeout (`scheduler/gangs/gang_cycle.py`, `scheduler/reservations.py`)",
    taken_out="members are placed one by one, and wait without end",
    without=placing_one_by_one_and_waiting_for_ever,
)
async def test_24_two_gangs_that_could_each_hold_half(world: World) -> None:
    await world.node("n1", "1")
    await world.node("n2", "1")
    for number in range(2):
        await world.pod(f"a{number}", gang="a", least=2)
        await asyncio.sleep(1.1)
        await world.pod(f"b{number}", gang="b", least=2)
        await asyncio.sleep(1.1)
    world.start()
    await asyncio.sleep(60)
    await world.settle()


async def a_refusal_while_outcomes_are_open(world: World) -> None:
    """Of both bindings of a gang the outcome is unknown; one is posted again and refused before the other is read."""
    await world.starts_with(n1="1", n2="1")
    world.faults.add(effects.Drop(), **BINDINGS, times=2)
    world.faults.add(effects.Fail(statuses.ApiError(422, "Invalid", "no")), **BINDINGS, skip=2, times=3)
    world.faults.add(effects.Delay(5.0), **READS)
    for number in range(2):
        await world.pod(f"a{number}", gang="a", least=2)
    await asyncio.sleep(10)
    await world.settle()


async def gangs_that_a_drain_left_in_part(world: World) -> None:
    """Two gangs on four nodes: each loses one, and what replaces its pod there finds no room."""
    await world.starts_with(n1="1", n2="1", n3="1", n4="1")
    world.beside(kubelets(world))
    for number in range(4):
        await world.pod(f"{'ab'[number % 2]}{number}", gang="ab"[number % 2], least=2)
    await asyncio.sleep(2)
    for name in (await world.where())["a0"], (await world.where())["b1"]:
        await drain(world, name)
    await asyncio.sleep(20)
    bound = [node for node in (await world.where()).values() if node]
    world.put("found", ("I4", len(bound) == 2, "both gangs are left alone for their timeout"))
    await world.settle()


@pytest.mark.parametrize(
    ("scene", "patched"),
    [
        (
            a_refusal_while_outcomes_are_open,
            lambda patch: patch.setattr(GangTable, "mark_changed", lambda *_, **how: False),
        ),
        (gangs_that_a_drain_left_in_part, lambda patch: patch.setattr(ServedProfiles, "giving_way", lambda *_: ())),
    ],
)
def test_no_gang_is_bound_in_part_for_good(scene: Any, patched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    objections, world = play(scene)
    assert not objections, "\n".join([*objections, world.timeline()])
    patched(monkeypatch)
    objections, _ = play(scene)
    assert any(one.startswith("I4") for one in objections), objections


def keeping_the_first_evaluator(patch: Any) -> None:
    first: dict[str, Any] = {}

    def serving(profile: Any) -> ProfileRuntime:
        made = ProfileRuntime(profile)
        made.evaluator = first.setdefault(profile.scheduler_name, made.evaluator)
        return made

    patch.setattr(policy_changes, "ProfileRuntime", serving)
    patch.setattr("policyengine.scheduler.profiles.ProfileRuntime", serving)


@fault(
    26,
    "I6",
    defence="an evaluator lives and dies with its policy, and a decision keeps the one it was made by "
    "(`scheduler/profiles.py`)",
    taken_out="what the first policy computed serves its successor",
    without=keeping_the_first_evaluator,
)
async def test_26_a_policy_is_replaced_while_bindings_are_under_way(world: World) -> None:
    await pinned(world)
    other = {"data": {"a.policy": PIN.format(node="n2")}}
    world.faults.add(effects.Delay(3.0), **BINDINGS, times=2)
    world.faults.add(meanwhile(("PATCH", f"{MAPS}/pin", other)), **BINDINGS)
    for number in range(6):
        await world.pod(f"p{number}", scheduler="pinned")
        await asyncio.sleep(1)
    world.serves["pinned"] = world.policies[world.hash_of(PIN.format(node="n2"))]
    await world.settle()


async def pinned(world: World) -> None:
    """Two nodes, and a policy from a ConfigMap that allows the first alone."""
    for name in ("n1", "n2"):
        await world.node(name, "9")
        world.knows_policy(PIN.format(node=name), {name})
    await world.config_map("pin", PIN.format(node="n1"))
    world.start()
    await asyncio.sleep(2)
    world.serves["pinned"] = world.policies[world.hash_of(PIN.format(node="n1"))]


def dropping_what_was_good(patch: Any) -> None:
    patch.setattr(Precedence, "put", lambda self, candidate: self._candidates.__setitem__(candidate.key, candidate))


@fault(
    27,
    "I3",
    defence="a ConfigMap whose new text is broken keeps serving what it served, and says so "
    "(`kube/policies/precedence.py`)",
    taken_out="a broken text serves nobody",
    without=dropping_what_was_good,
)
async def test_27_a_policy_that_is_broken_or_cut_short_or_flapping(world: World) -> None:
    await pinned(world)
    good = PIN.format(node="n1")
    for number in range(20):
        text = (good, good[: 10 + 3 * number], good.replace("require", "requires"))[number % 3]
        await world.call("PATCH", f"{MAPS}/pin", {"data": {"a.policy": text}}, MERGE)
        await asyncio.sleep(0.5)
    await world.call("PATCH", f"{MAPS}/pin", {"data": {"a.policy": good[:40]}}, MERGE)
    await asyncio.sleep(30)
    await world.pod("p", scheduler="pinned")
    await world.settle(60)
    annotations = (await world.call("GET", f"{MAPS}/pin"))["metadata"]["annotations"]
    world.put("found", ("scene", '"rejected"' in annotations["policyengine.io/status"], "the status says so"))


class Extender:
    """A transport to an extender that lets `names` through: late, large, or beside the question."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.names: tuple[str, ...] = ("n1",)
        self.padding = 0

    async def request(self, method: str, path: str, **how: Any) -> Response:
        if self.seconds > how["timeout"]:
            await asyncio.sleep(how["timeout"])
            raise TimedOut("no answer in time", sent=True)
        await asyncio.sleep(self.seconds)
        body = json.dumps({"NodeNames": self.names}).encode() + b" " * self.padding
        return AiohttpResponse(Body(body), http_extender.MAX_ANSWER)  # type: ignore[arg-type]

    async def close(self) -> None: ...


class Body:
    """An answer as aiohttp gives it."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.content = self

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self._body

    def close(self) -> None: ...

    def release(self) -> None: ...


def waiting_without_end(patch: Any) -> None:
    patch.setattr(http_extender, "seconds_of", lambda text: 1e9)


@fault(
    28,
    "I3",
    defence="a request ends after `httpTimeout`, an answer at its size limit; a node that was not asked about makes it "
    "a failure, and a failure counts as configured (`kube/extenders/http_extender.py`, `http_extender.py`)",
    taken_out="an answer is waited for without end",
    without=waiting_without_end,
)
async def test_28_an_extender_that_is_slow_or_oversized_or_names_unknown_nodes(world: World) -> None:
    extender = Extender()
    head = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n"
    given = {"urlPrefix": "http://extender", "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "2s"}
    (completed,) = configuration.read(f"{head}extenders: {json.dumps([given])}\n", "x").data["extenders"]
    world.extenders = [HttpExtender(completed, extender)]
    await world.starts_with(n1="9")
    extender.seconds = 1e8
    await world.pod("slow")
    await asyncio.sleep(10)
    extender.seconds = 0.0
    extender.names = ("elsewhere",)
    await world.pod("astray")
    await asyncio.sleep(10)
    told = (await world.call("GET", f"{PODS}/astray"))["status"].get("conditions", [{}])[0].get("message", "")
    world.put("found", ("scene", "which it was not asked about" in told, "the pod is told what the extender said"))
    extender.names, extender.padding = ("n1",), 200_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_extender, "MAX_ANSWER", 100_000)
        await world.pod("large")
        await asyncio.sleep(10)
    bound = (await world.where())["large"]
    world.put("found", ("I8", not bound, "an answer over the limit is not read"))
    extender.padding = 0
    await world.settle()


CANDIDATES = (
    {"policyengine.io/mode": "shadow"},
    {"policyengine.io/mode": "canary", "policyengine.io/canary-percent": "50"},
    {
        "policyengine.io/mode": "canary",
        "policyengine.io/canary-percent": "100",
        "policyengine.io/budget": "{unschedulable: 40%, least: 2}",
    },
)
STRANGE = {"policyengine.io/mode": "canary", "policyengine.io/budget": "{least: none}"}
SPECS: tuple[dict[str, Any], ...] = (
    {"mode": "Shadow"},
    {"mode": "Canary", "canary": {"percent": 50}},
    {"mode": "Canary", "canary": {"percent": 100}, "budget": {"unschedulable": "40%", "least": 2}},
)


async def policies_at_random(world: World) -> None:
    """Policies of both forms are replaced, broken, tried and rolled back while bindings are late, refused and lost."""
    random = Random(world.seed)
    await world.call("POST", CRDS, CRD)
    for name in ("n1", "n2", "n3"):
        await world.node(name, "6")
    for allowed in ("n1", "n2", "n9"):
        world.knows_policy(PIN.format(node=allowed), {allowed})
    await world.config_map("pin", PIN.format(node="n1"))
    world.start()
    await asyncio.sleep(2)
    pods = 0
    for _ in range(40):
        step = random.randrange(8)
        text = PIN.format(node=random.choice(("n1", "n2", "n9")))
        if step == 0:
            await world.call("PATCH", f"{MAPS}/pin", {"data": {"a.policy": text}}, MERGE)
        elif step == 1:
            await world.call("PATCH", f"{MAPS}/pin", {"data": {"a.policy": text[: random.randrange(70)]}}, MERGE)
        elif step == 2:
            await world.call("DELETE", f"{random.choice((MAPS, POLICIES))}/next")
        elif step == 3:
            await world.call("DELETE", f"{POLICIES}/next")
            spec = random.choice(SPECS) | {"policies": {"a.policy": random.choice((text, text, text[:30]))}}
            await world.call("POST", POLICIES, {"metadata": {"name": "next"}, "spec": spec})
        elif step == 4:
            annotations = random.choice((*CANDIDATES, STRANGE))
            labels = {"policyengine.io/policy": "true"}
            metadata = {"name": "next", "labels": labels, "annotations": annotations}
            item = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"a.policy": text}}
            await world.call("DELETE", f"{MAPS}/next")
            await world.call("POST", MAPS, item)
        elif step == 5:
            harm = random.choice((effects.Delay(3.0), effects.Fail(statuses.ApiError(503, "ServiceUnavailable", "no"))))
            world.faults.add(harm, **BINDINGS, times=2)
        else:
            await world.pod(f"p{pods}", "200m", scheduler="pinned")
            pods += 1
        await asyncio.sleep(random.choice((0.0, 0.1, 1.0, 4.0)))
    for place in (MAPS, POLICIES):
        await world.call("DELETE", f"{place}/next")
    await world.call("PATCH", f"{MAPS}/pin", {"data": {"a.policy": PIN.format(node="n2")}}, MERGE)
    world.serves["pinned"] = world.policies[world.hash_of(PIN.format(node="n2"))]
    await world.settle()


@pytest.mark.parametrize("seed", range(8))
def test_policies_that_come_and_go_at_random_decide_one_pod_each(seed: int) -> None:
    objections, world = play(policies_at_random, seed=seed)
    assert not objections, f"{objections}\n{world.timeline()}"
