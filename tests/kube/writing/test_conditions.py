"""Conditions of pods, held against what a real kube-scheduler wrote."""

import asyncio
import random

from msgspec.structs import replace

from policyengine.cluster.kinds import PODS
from policyengine.kube.http.client import Client
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Store
from policyengine.kube.writing.pod_events import ConditionWriter
from policyengine.kube.writing.request_queue import RequestQueue
from policyengine.scheduler.actions import PatchPodCondition
from tests.kube.scripted_server import Asked, ScriptedServer
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.writing.recorded_writes import accept, recorded, running


def a_condition(message: str) -> PatchPodCondition:
    return PatchPodCondition("uid", "default", "big", "Unschedulable", message, observed_generation=1)


def written(*messages: str, pause: float | None = None) -> list[Asked]:
    """What is sent for conditions with these messages, that come together, or each after a pause."""
    server = ScriptedServer(handler=accept)

    async def work() -> None:
        queue = RequestQueue(VirtualClock(), random.Random(1))
        client, clock = Client(server), VirtualClock()
        writer = ConditionWriter(client, clock, queue, Store(PODS, print), ServerHistory(client, clock))

        async def several() -> None:
            for message in messages:
                writer.write(a_condition(message))
                if pause is not None:
                    await queue.flush(10)
                    await asyncio.sleep(pause)
            await queue.flush(10)

        await running(queue.run(), several)

    run(work())
    return server.asked


def test_a_condition_is_patched_as_kube_scheduler_patched_it() -> None:
    expected = recorded("/api/v1/namespaces/default/pods/big/status")
    (asked,) = written(expected["status"]["conditions"][0]["message"])
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    for one in (asked.body, expected):
        one["status"]["conditions"][0]["lastTransitionTime"] = ""
    assert asked.body == expected


def test_a_condition_said_before_is_not_said_again_and_keeps_its_transition_time() -> None:
    entries = [one.body["status"]["conditions"][0] for one in written("one", "one", "two", pause=100)]
    assert [entry["message"] for entry in entries] == ["one", "two"]
    assert entries[0]["lastTransitionTime"] == entries[1]["lastTransitionTime"]


def test_of_conditions_that_wait_only_the_latest_goes_out() -> None:
    asked = written(*map(str, range(50)))
    assert [one.body["status"]["conditions"][0]["message"] for one in asked] == ["49"]


def test_what_was_said_of_pods_that_are_gone_is_not_kept() -> None:
    async def work() -> None:
        queue, client, clock = RequestQueue(VirtualClock(), random.Random(1)), Client(ScriptedServer()), VirtualClock()
        writer = ConditionWriter(client, clock, queue, Store(PODS, print), ServerHistory(client, clock))
        for number in range(5000):
            writer.write(replace(a_condition("no room"), uid=f"u{number}"))
            assert len(writer._told) <= 1025

    run(work())
