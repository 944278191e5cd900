"""Conditions of pods, held against what a real kube-scheduler wrote."""

import asyncio
import random

from policyengine.kube.http.client import Client
from policyengine.kube.writing.events import ConditionWriter
from policyengine.kube.writing.request_queue import RequestQueue
from policyengine.scheduler.actions import PatchPodCondition
from tests.kube.scripted_server import ScriptedServer
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.writing.recorded_writes import accept, recorded, running


def a_condition(message: str) -> PatchPodCondition:
    return PatchPodCondition("uid", "default", "big", "Unschedulable", message, observed_generation=1)


def test_a_condition_is_patched_as_kube_scheduler_patched_it() -> None:
    expected = recorded("/api/v1/namespaces/default/pods/big/status")
    server = ScriptedServer(handler=accept)

    async def work() -> None:
        queue = RequestQueue(VirtualClock(), random.Random(1))
        writer = ConditionWriter(Client(server), VirtualClock(), queue)
        writer.write(a_condition(expected["status"]["conditions"][0]["message"]))
        await running(queue.run(), lambda: queue.flush(10))

    run(work())
    asked = server.asked[0]
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    for one in (asked.body, expected):
        one["status"]["conditions"][0]["lastTransitionTime"] = ""
    assert asked.body == expected


def test_a_condition_said_before_is_not_said_again_and_keeps_its_transition_time() -> None:
    server = ScriptedServer(handler=accept)

    async def work() -> None:
        queue = RequestQueue(VirtualClock(), random.Random(1))
        writer = ConditionWriter(Client(server), VirtualClock(), queue)

        async def several() -> None:
            for message in ("one", "one", "two"):
                writer.write(a_condition(message))
                await queue.flush(10)
                await asyncio.sleep(100)

        await running(queue.run(), several)

    run(work())
    entries = [one.body["status"]["conditions"][0] for one in server.asked]
    assert [entry["message"] for entry in entries] == ["one", "two"]
    assert entries[0]["lastTransitionTime"] == entries[1]["lastTransitionTime"]


def test_of_conditions_that_wait_only_the_latest_goes_out() -> None:
    server = ScriptedServer(handler=accept)

    async def work() -> None:
        queue = RequestQueue(VirtualClock(), random.Random(1))
        writer = ConditionWriter(Client(server), VirtualClock(), queue)
        for number in range(50):
            writer.write(a_condition(str(number)))
        await running(queue.run(), lambda: queue.flush(10))

    run(work())
    assert [one.body["status"]["conditions"][0]["message"] for one in server.asked] == ["49"]
