"""Conditions of pods, held against what a real kube-scheduler wrote."""

import asyncio
import random
from typing import Any

from policyengine.kube.http.client import Client
from policyengine.kube.writing.bindings import Binder
from policyengine.kube.writing.conditions import ConditionWriter
from policyengine.scheduler.actions import Bind, PatchPodCondition
from policyengine.scheduler.messages import BindSucceeded
from tests.kube.scripted_server import Answer, ScriptedServer
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.writing.recorded_writes import accept, recorded, running


def a_condition(message: str) -> PatchPodCondition:
    return PatchPodCondition("uid", "default", "big", "Unschedulable", message, observed_generation=1)


def test_a_condition_is_patched_as_kube_scheduler_patched_it() -> None:
    expected = recorded("/api/v1/namespaces/default/pods/big/status")
    server = ScriptedServer(handler=accept)

    async def work() -> None:
        writer = ConditionWriter(Client(server), VirtualClock(), random.Random(1))
        writer.write(a_condition(expected["status"]["conditions"][0]["message"]))
        await running(writer.outbox.run(), lambda: writer.outbox.flush(10))

    run(work())
    asked = server.asked[0]
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    for one in (asked.body, expected):
        one["status"]["conditions"][0]["lastTransitionTime"] = ""
    assert asked.body == expected


def test_a_condition_said_before_is_not_said_again_and_keeps_its_transition_time() -> None:
    server = ScriptedServer(handler=accept)

    async def work() -> None:
        writer = ConditionWriter(Client(server), VirtualClock(), random.Random(1))

        async def several() -> None:
            for message in ("one", "one", "two"):
                writer.write(a_condition(message))
                await writer.outbox.flush(10)
                await asyncio.sleep(100)

        await running(writer.outbox.run(), several)

    run(work())
    entries = [one.body["status"]["conditions"][0] for one in server.asked]
    assert [entry["message"] for entry in entries] == ["one", "two"]
    assert entries[0]["lastTransitionTime"] == entries[1]["lastTransitionTime"]


def test_of_conditions_that_wait_only_the_latest_goes_out() -> None:
    server = ScriptedServer(handler=accept)

    async def work() -> None:
        writer = ConditionWriter(Client(server), VirtualClock(), random.Random(1))
        for number in range(50):
            writer.write(a_condition(str(number)))
        await running(writer.outbox.run(), lambda: writer.outbox.flush(10))

    run(work())
    assert [one.body["status"]["conditions"][0]["message"] for one in server.asked] == ["49"]


def test_a_binding_waits_for_the_condition_under_way_and_drops_the_one_that_waits() -> None:
    server = ScriptedServer(handler=lambda asked: Answer(200, {}, after=5.0 if "status" in asked.path else 0.0))

    async def work() -> None:
        clock = VirtualClock()
        client = Client(server)
        writer = ConditionWriter(client, clock, random.Random(1))
        answers: list[Any] = []
        binder = Binder(client, answers.append, settle=writer.settle, may_bind=lambda uid: True, workers=2)
        tasks = [asyncio.ensure_future(writer.outbox.run()), asyncio.ensure_future(binder.run())]
        writer.write(a_condition("one"))
        await asyncio.sleep(1)
        writer.write(a_condition("two"))
        binder.post(Bind("uid", "default", "big", "node-1", "hash"))
        await asyncio.sleep(60)
        assert answers == [BindSucceeded("uid")]
        for task in tasks:
            task.cancel()

    run(work())
    assert [(one.path.rpartition("/")[2], one.at) for one in server.asked] == [("status", 0.0), ("binding", 5.0)]
