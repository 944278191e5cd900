"""Events, held against what a real kube-scheduler wrote."""

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from policyengine.clock import micro_time
from policyengine.kube.http.client import Client, ConnectionFailed
from policyengine.kube.writing.pod_events import EventRecorder
from policyengine.kube.writing.request_queue import LIMIT, RequestQueue
from policyengine.scheduler.actions import RecordEvent
from policyengine.scheduler.conditions_and_events import NOTE_LIMIT
from tests.kube.scripted_server import Answer, Asked, ScriptedServer, failure
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.writing.recorded_writes import accept, recorded, running


def written(*events: RecordEvent, times: int = 1, server: ScriptedServer | None = None) -> list[Asked]:
    server = server or ScriptedServer(handler=accept)

    async def work() -> None:
        queue = RequestQueue(VirtualClock(), random.Random(1))
        recorder = EventRecorder(Client(server), VirtualClock(), queue, host="host")

        async def several() -> None:
            for event in events * times:
                recorder.record(event)
                await queue.flush(300)

        await running(queue.run(), several)

    run(work())
    return server.asked


def an_event(note: str) -> RecordEvent:
    uid = "70aae557-a10d-4048-ac92-50d9d140604a"
    return RecordEvent(uid, "default", "small", "203", "Normal", "Scheduled", "Binding", note, "default-scheduler")


def test_an_event_is_written_as_kube_scheduler_wrote_it() -> None:
    expected = recorded("/apis/events.k8s.io/v1/namespaces/default/events", reason="Scheduled")
    asked = written(an_event(expected["note"]))[0]
    assert (asked.method, asked.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/default/events")
    body = asked.body
    stamp = body["metadata"]["name"].removeprefix("small.")
    assert len(stamp) == len(expected["metadata"]["name"].removeprefix("small.")) and int(stamp, 16)
    assert len(body["eventTime"]) == len(expected["eventTime"])
    for one in (body, expected):
        one["metadata"]["name"] = one["eventTime"] = ""
    assert body == expected


def test_the_name_of_an_event_is_when_it_happened_but_scheduled_again_by_a_successor_it_is_the_same_event() -> None:
    event = an_event("Successfully assigned default/small to n1")
    (failed,) = written(replace(event, reason="FailedScheduling"))
    stamp = failed.body["metadata"]["name"].removeprefix("small.")
    assert int(stamp, 16) // 1000 == int(VirtualClock().wall_offset * 1e6)
    (first,), (again,) = written(event), written(replace(event, resource_version="9", policy="p@1"))
    elsewhere = written(replace(event, note="Successfully assigned default/small to n2"))[0]
    names = [one.body["metadata"]["name"] for one in (first, again, elsewhere)]
    assert names[0] == names[1] != names[2]


def test_the_policy_is_named_beside_the_note_and_another_policys_refusal_is_another_event() -> None:
    policies = ["riya@9ab79ab40b36", "riya@0123456789ab"]
    asked = written(*(replace(an_event("x"), policy=policy) for policy in policies))
    assert [one.body["metadata"]["annotations"] for one in asked] == [
        {"policyengine.io/decided-by": policy} for policy in policies
    ]
    assert {one.body["note"] for one in asked} == {"x"}


def test_the_same_event_again_grows_a_series_at_powers_of_two() -> None:
    asked = written(an_event("x"), times=5)
    assert [one.method for one in asked] == ["POST", "PATCH", "PATCH"]
    assert [one.body["series"]["count"] for one in asked[1:]] == [2, 4]
    assert asked[1].path.endswith(asked[0].body["metadata"]["name"])


def test_a_series_whose_event_expired_is_created_again() -> None:
    script = ScriptedServer(Answer(201, {}), failure(404, "NotFound"), Answer(201, {}))
    asked = written(an_event("x"), times=2, server=script)
    assert [one.method for one in asked] == ["POST", "PATCH", "POST"]
    assert asked[2].body["series"]["count"] == 2


def test_a_long_note_is_cut_to_what_the_server_takes() -> None:
    note = written(an_event("ü" * 2000))[0].body["note"]
    assert len(note.encode()) <= NOTE_LIMIT
    assert note.endswith("ü ...")


def test_an_event_refused_for_good_is_dropped_and_reported() -> None:
    problems: list[str] = []

    async def work() -> None:
        server = ScriptedServer(failure(403, "Forbidden", "namespace is being terminated"))
        queue = RequestQueue(VirtualClock(), random.Random(1), on_problem=problems.append)
        recorder = EventRecorder(Client(server), VirtualClock(), queue)
        recorder.record(an_event("x"))
        await running(queue.run(), lambda: queue.flush(10))
        assert queue.backlog == 0

    run(work())
    assert "being terminated" in problems[0]


def test_an_event_of_a_namespace_that_is_being_deleted_is_given_up_without_a_word() -> None:
    problems: list[str] = []
    ending = failure(403, "Forbidden", "unable to create new content in namespace default: it is being terminated")
    ending.body["details"] = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
    server = ScriptedServer(handler=lambda asked: ending)

    async def work() -> None:
        queue = RequestQueue(VirtualClock(), random.Random(1), on_problem=problems.append)
        recorder = EventRecorder(Client(server), VirtualClock(), queue)

        async def several() -> None:
            for _ in range(8):
                recorder.record(an_event("x"))
                await queue.flush(10)

        await running(queue.run(), several)

    run(work())
    assert len(server.asked) == 1 and problems == []


@given(st.floats(0, 4e9))
def test_a_time_is_written_as_datetime_writes_it(seconds: float) -> None:
    expected = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    assert micro_time(seconds) == expected


def test_events_written_together_are_each_written_once_whatever_becomes_of_the_others() -> None:
    tries: Counter[str] = Counter()

    def answer(asked: Asked) -> Any:
        name = asked.body["regarding"]["name"]
        tries[name] += 1
        if tries[name] > 1:
            return failure(409, "AlreadyExists", "it is there") if name == "e1" else Answer(201, {})
        return {
            "e1": ConnectionFailed("reset", sent=True),
            "e2": failure(503, "ServiceUnavailable", "later"),
            "e3": failure(422, "Invalid", "never"),
        }.get(name, Answer(201, {}))

    problems: list[str] = []

    async def work() -> int:
        queue = RequestQueue(VirtualClock(), random.Random(1), on_problem=problems.append)
        recorder = EventRecorder(Client(ScriptedServer(handler=answer)), VirtualClock(), queue)
        for number in range(20):
            pod = f"e{number}"
            recorder.record(RecordEvent(pod, "default", pod, "1", "Normal", "Scheduled", "Binding", "note", "s"))
        left = 1

        async def flush() -> None:
            nonlocal left
            left = await queue.flush(60)

        await running(queue.run(), flush)
        return left

    assert run(work()) == 0
    assert tries == {f"e{number}": 2 if number in (1, 2) else 1 for number in range(20)}
    assert len(problems) == 1 and "e3." in problems[0]


def test_events_are_dropped_while_the_server_fails_more_than_the_limit_and_a_warning_says_so() -> None:
    problems: list[str] = []

    async def work() -> None:
        queue = RequestQueue(VirtualClock(), random.Random(1))
        recorder = EventRecorder(Client(ScriptedServer()), VirtualClock(), queue, on_problem=problems.append)
        for number in range(LIMIT + 50):
            recorder.record(RecordEvent(f"u{number}", "ns", "p", "1", "Normal", "Scheduled", "Binding", "note", "s"))
        assert queue.backlog == LIMIT

    run(work())
    assert problems == ["events are dropped: 10000 writes wait for the API server"]
