"""What becomes of a burst: bindings first, events behind them within bounds, conditions never after their binding."""

import asyncio
import logging
import random
from typing import Any

import pytest

from policyengine.kube.http.client import Client
from policyengine.kube.runner import CYCLES
from policyengine.kube.watching.informers import Informers, MessageQueue
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.writing import request_queue
from policyengine.kube.writing.request_queue import BACKLOG, LIMIT
from policyengine.kube.writing.writer import BINDINGS, Writer
from policyengine.scheduler.actions import Bind, DeleteVictim, Log, PatchPodCondition, RecordEvent
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    Message,
    VictimDeleted,
    VictimNotDeleted,
)
from tests.kube.scripted_server import Answer, Asked, ScriptedServer, failure
from tests.kube.virtual_time import VirtualClock, run


class World:
    """A writer on a scripted server, whose core has an event written for each binding."""

    def __init__(self, server: ScriptedServer) -> None:
        clock = VirtualClock()
        client = Client(server)
        self.told: list[Message] = []
        self.withdrawn: set[str] = set()
        self.writer = Writer(
            client,
            clock,
            random.Random(1),
            self._answered,
            informers=Informers(client, clock, random.Random(1), MessageQueue(10), (), ServerHistory(client, clock)),
            may_bind=lambda uid: uid not in self.withdrawn,
            leads=lambda: True,
            host="test",
            extenders=(),
        )

    def _answered(self, message: Message) -> None:
        self.told.append(message)
        if isinstance(message, BindSucceeded):
            event = ("1", "Normal", "Scheduled", "Binding", "assigned", "default-scheduler")
            self.writer.dispatch(RecordEvent(message.uid, "default", message.uid, *event))

    def bind(self, uid: str) -> None:
        self.writer.dispatch(Bind(uid, "default", uid, "node", "hash"))


def played(server: ScriptedServer, scene: Any) -> World:
    async def work() -> World:
        world = World(server)
        tasks = [asyncio.ensure_future(one) for one in world.writer.work()]
        await scene(world)
        await world.writer.flush()
        for task in tasks:
            task.cancel()
        return world

    return run(work())


def test_a_burst_is_bound_first_and_its_events_follow_within_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "BACKLOG", 1024)
    most = {"bindings": 0, "writes": 0}
    server = ScriptedServer(handler=lambda asked: Answer(201, {}, after=0.05))

    async def burst(world: World) -> None:
        writer, left = world.writer, 2000
        while left:
            while not writer.has_room:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            for _ in range(CYCLES):
                world.bind(f"p{left}")
                left -= 1
                if not left:
                    break
            most["bindings"] = max(most["bindings"], writer.bindings)
            most["writes"] = max(most["writes"], writer.queue.backlog)
            await asyncio.sleep(0)
        while writer.bindings:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    world = played(server, burst)
    assert len(world.told) == 2000 and len(server.asked) == 4000
    kinds = [one.path.rpartition("/")[2] for one in server.asked]
    assert kinds[:1024].count("binding") > 900, "while both wait, bindings go first"
    assert most["bindings"] < BINDINGS + CYCLES
    assert 1024 <= most["writes"] < 1024 + BINDINGS + CYCLES
    assert BACKLOG + BINDINGS + CYCLES < LIMIT, "a server that takes events loses none"


def test_each_binding_has_its_outcome_and_a_silent_one_holds_up_nobody() -> None:
    def answer(asked: Asked) -> Answer:
        if not asked.path.endswith("binding"):
            return Answer(201, {})
        slow = asked.body["metadata"]["name"] == "slow"
        return failure(409) if asked.body["metadata"]["name"] == "taken" else Answer(201, {}, after=20.0 * slow)

    async def scene(world: World) -> None:
        world.withdrawn.add("withdrawn")
        for uid in ("slow", "taken", "withdrawn", "fine"):
            world.bind(uid)
        await asyncio.sleep(1)
        assert world.writer.bindings == 1
        await asyncio.sleep(30)

    world = played(ScriptedServer(handler=answer), scene)
    outcomes = {outcome.uid: getattr(outcome, "failure", None) for outcome in world.told}  # type: ignore[union-attr]
    assert outcomes == {
        "taken": BindFailure.CONFLICT,
        "withdrawn": BindFailure.WITHDRAWN,
        "fine": None,
        "slow": None,
    }
    assert isinstance(world.told[-1], BindSucceeded) and not isinstance(world.told[-1], BindFailed)


def test_a_binding_waits_for_the_condition_under_way_and_drops_the_one_that_waits() -> None:
    server = ScriptedServer(handler=lambda asked: Answer(200, {}, after=5.0 if "status" in asked.path else 0.0))

    async def scene(world: World) -> None:
        world.writer.dispatch(PatchPodCondition("uid", "default", "big", "Unschedulable", "one"))
        await asyncio.sleep(1)
        world.writer.dispatch(PatchPodCondition("uid", "default", "big", "Unschedulable", "two"))
        world.bind("uid")
        await asyncio.sleep(60)

    assert played(server, scene).told == [BindSucceeded("uid")]
    asked = [(one.path.rpartition("/")[2], one.at) for one in server.asked]
    assert asked == [("status", 0.0), ("binding", 5.0), ("events", 5.0)]


PREEMPTED = RecordEvent("u", "default", "victim", "1", "Normal", "Preempted", "Preempting", "by p", "default-scheduler")
VICTIM = DeleteVictim("u", "default", "victim", "p", "message", 3, PREEMPTED)


@pytest.mark.parametrize("path", ["status", "victim"])
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (404, VictimDeleted(VICTIM, was_there=False)),
        (409, VictimDeleted(VICTIM, was_there=False)),
        (403, VictimNotDeleted(VICTIM, "no", 0.0)),
        (429, VictimNotDeleted(VICTIM, "no", 3.0)),
        (500, VictimNotDeleted(VICTIM, "no", 0.0)),
    ],
)
def test_a_victim_of_that_uid_that_is_not_there_is_gone_and_any_other_refusal_is_told(
    status: int, outcome: Message, path: str
) -> None:
    refused = failure(status, retry_after="3" if status == 429 else "")
    server = ScriptedServer(handler=lambda asked: refused if asked.path.endswith(path) else Answer(200, {}))

    async def scene(world: World) -> None:
        world.writer.dispatch(VICTIM)
        await asyncio.sleep(60)

    assert played(server, scene).told == [outcome]


def test_a_line_of_a_policy_is_logged_with_its_pod_node_and_hash(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World) -> None:
        world.writer.dispatch(Log("uid", "ns", "p", "postBind", "n1", "is there", "0123456789abcdef"))

    with caplog.at_level(logging.INFO, logger="policyengine"):
        played(ScriptedServer(), scene)
    (line,) = caplog.records
    told = vars(line)
    assert line.getMessage() == "postBind: is there"
    assert (told["pod"], told["node"], told["hash"]) == ("ns/p", "n1", "0123456789ab")


def test_events_that_the_server_fails_hold_up_no_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "BACKLOG", 1024)
    server = ScriptedServer(handler=lambda asked: Answer(201, {}) if asked.path.endswith("binding") else failure(503))

    async def scene(world: World) -> None:
        for number in range(3 * 1024):
            world.bind(f"p{number}")
            if number % 16 == 0:
                await asyncio.sleep(0.01)
                assert world.writer.has_room or world.writer.bindings
        await asyncio.sleep(1)

    world = played(server, scene)
    assert len(world.told) == 3 * 1024
