"""What is written: events, conditions and bindings, held against what a real kube-scheduler wrote."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyengine.kube.binder import Binder, outcome_of
from policyengine.kube.client import ApiError, Client
from policyengine.kube.conditions import ConditionWriter
from policyengine.kube.events import NOTE_LIMIT, EventRecorder, micro_time
from policyengine.kube.outbox import LATE, PATIENCE, Outbox
from policyengine.kube.transport import ConnectionFailed
from policyengine.scheduler.messages import (
    Bind,
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    PatchPodCondition,
    RecordEvent,
)
from tests.kube.scripted_server import Answer, Asked, ScriptedServer, failure
from tests.kube.virtual_time import VirtualClock, run
from tests.shared_facts import shared

CALLS = json.loads(shared("recorded/scheduler-calls.json").read_text())


def recorded(uri: str, **fields: str) -> dict[str, Any]:
    """The body of the first recorded request to a path whose fields have these values."""
    for call in CALLS:
        body = call.get("request") or {}
        if call["uri"] == uri and all(body.get(key) == value for key, value in fields.items()):
            found: dict[str, Any] = body
            return found
    raise AssertionError(f"nothing recorded of {uri}")


def accept(asked: Asked) -> Answer:
    return Answer(201, {})


async def running(work: Awaitable[None], then: Callable[[], Awaitable[object]]) -> None:
    task = asyncio.ensure_future(work)
    try:
        await then()
    finally:
        task.cancel()


def written(event: RecordEvent, times: int = 1, server: ScriptedServer | None = None) -> list[Asked]:
    server = server or ScriptedServer(handler=accept)

    async def work() -> None:
        recorder = EventRecorder(Client(server), VirtualClock(), random.Random(1), host="host")

        async def several() -> None:
            for _ in range(times):
                recorder.record(event)
                await recorder.outbox.flush(300)

        await running(recorder.outbox.run(), several)

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
    assert len(stamp) == len(expected["metadata"]["name"].removeprefix("small."))
    assert int(stamp, 16) // 1000 == int(VirtualClock().wall_offset * 1e6)
    assert len(body["eventTime"]) == len(expected["eventTime"])
    for one in (body, expected):
        one["metadata"]["name"] = one["eventTime"] = ""
    assert body == expected


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


def test_an_event_outlives_an_outage_of_the_server() -> None:
    faults = [ConnectionFailed("refused", sent=False), failure(503), failure(429, retry_after="9")]
    asked = written(an_event("x"), server=ScriptedServer(*faults, Answer(201, {})))
    assert len(asked) == 4
    assert asked[3].at - asked[2].at >= 9


def test_an_event_refused_for_good_is_dropped_and_reported() -> None:
    problems: list[str] = []

    async def work() -> None:
        server = ScriptedServer(failure(403, "Forbidden", "namespace is being terminated"))
        recorder = EventRecorder(Client(server), VirtualClock(), random.Random(1), on_problem=problems.append)
        recorder.record(an_event("x"))
        await running(recorder.outbox.run(), lambda: recorder.outbox.flush(10))
        assert recorder.outbox.backlog == 0

    run(work())
    assert "being terminated" in problems[0]


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


def bound(script: Any, may_bind: bool = True) -> tuple[Any, list[Asked]]:
    server = ScriptedServer(*([script] if script is not None else []))
    answers: list[Any] = []

    async def settle(uid: str) -> None:
        pass

    async def work() -> None:
        binder = Binder(Client(server), answers.append, settle=settle, may_bind=lambda uid: may_bind, workers=1)
        task = asyncio.ensure_future(binder.run())
        binder.post(Bind("70aae557-a10d-4048-ac92-50d9d140604a", "default", "small", "node-1", "hash"))
        assert binder.outstanding == 1
        await asyncio.sleep(60)
        assert binder.outstanding == 0
        task.cancel()

    run(work())
    return answers[0], server.asked


def test_a_binding_is_posted_as_kube_scheduler_posted_it() -> None:
    answer, asked = bound(Answer(201, {}))
    assert isinstance(answer, BindSucceeded)
    assert asked[0].path == "/api/v1/namespaces/default/pods/small/binding"
    assert asked[0].body == recorded("/api/v1/namespaces/default/pods/small/binding")


def test_a_binding_whose_decision_no_longer_stands_is_not_posted() -> None:
    answer, asked = bound(None, may_bind=False)
    assert answer.failure is BindFailure.WITHDRAWN
    assert asked == []


def test_bindings_posted_together_have_an_outcome_each_and_a_silent_one_holds_up_nobody() -> None:
    answers = {
        "p0": Answer(201, {}),
        "p1": failure(409, "Conflict", "taken"),
        "p2": ConnectionFailed("reset", sent=True),
    }
    server = ScriptedServer(
        handler=lambda asked: answers.get(asked.body["metadata"]["name"], Answer(201, {}, after=20.0))
    )
    told: list[tuple[float, Any]] = []

    async def settle(uid: str) -> None:
        pass

    async def work() -> None:
        loop = asyncio.get_running_loop()
        binder = Binder(
            Client(server),
            lambda outcome: told.append((loop.time(), outcome)),
            settle=settle,
            may_bind=lambda uid: uid != "u4",
            workers=8,
        )
        task = asyncio.ensure_future(binder.run())
        for number in range(5):
            binder.post(Bind(f"u{number}", "default", f"p{number}", "node-1", "hash"))
        await asyncio.sleep(60)
        assert binder.outstanding == 0
        task.cancel()

    run(work())
    at = {outcome.uid: (when, type(outcome), getattr(outcome, "failure", None)) for when, outcome in told}
    assert at == {
        "u0": (0.0, BindSucceeded, None),
        "u1": (0.0, BindFailed, BindFailure.CONFLICT),
        "u2": (0.0, BindUnknown, None),
        "u3": (20.0, BindSucceeded, None),
        "u4": (0.0, BindFailed, BindFailure.WITHDRAWN),
    }
    assert len(server.asked) == 4


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
        recorder = EventRecorder(
            Client(ScriptedServer(handler=answer)), VirtualClock(), random.Random(1), on_problem=problems.append
        )
        for number in range(20):
            pod = f"e{number}"
            recorder.record(RecordEvent(pod, "default", pod, "1", "Normal", "Scheduled", "Binding", "note", "s"))
        left = 1

        async def flush() -> None:
            nonlocal left
            left = await recorder.outbox.flush(60)

        await running(recorder.outbox.run(), flush)
        return left

    assert run(work()) == 0
    assert tries == {f"e{number}": 2 if number in (1, 2) else 1 for number in range(20)}
    assert len(problems) == 1 and "e3." in problems[0]


def test_a_lost_answer_leaves_the_outcome_open_and_a_refused_connection_does_not() -> None:
    assert isinstance(bound(ConnectionFailed("reset", sent=True))[0], BindUnknown)
    refused = bound(ConnectionFailed("refused", sent=False))[0]
    assert isinstance(refused, BindFailed)
    assert refused.failure is BindFailure.OVERLOADED


@pytest.mark.parametrize(
    ("status", "failure_"),
    [
        (409, BindFailure.CONFLICT),
        (404, BindFailure.NOT_FOUND),
        (403, BindFailure.REFUSED),
        (422, BindFailure.REFUSED),
        (429, BindFailure.OVERLOADED),
        (503, BindFailure.OVERLOADED),
        (500, None),
        (504, None),
    ],
)
def test_each_refusal_of_a_binding_means_one_thing(status: int, failure_: BindFailure | None) -> None:
    outcome = outcome_of("uid", ApiError(status, "", "because", 3.0))
    if failure_ is None:
        assert outcome == BindUnknown("uid", "because")
    else:
        assert outcome == BindFailed("uid", failure_, "because", 3.0)


def test_an_outbox_gives_way_to_what_is_more_urgent_but_not_for_long() -> None:
    sent: list[float] = []

    async def work() -> None:
        clock = VirtualClock()

        async def send(item: str) -> None:
            sent.append(clock.monotonic())

        outbox: Outbox[str] = Outbox("thing", send, clock, random.Random(1), busy=lambda: True)
        for number in range(200):
            outbox.put(str(number), str(number))
        await running(outbox.run(), lambda: outbox.flush(10))

    run(work())
    assert len(sent) == 200
    assert sum(at < PATIENCE for at in sent) == 29  # the probe's, ten a second
    assert max(sent) < PATIENCE + 0.2


def test_who_makes_items_faster_than_they_are_written_waits_before_one_is_late() -> None:
    behind: list[float] = []

    async def work() -> None:
        clock, made = VirtualClock(), dict[str, float]()

        async def send(item: str) -> None:
            await asyncio.sleep(0.01)
            behind.append(clock.monotonic() - made[item])

        outbox: Outbox[str] = Outbox("thing", send, clock, random.Random(1), workers=4, busy=lambda: len(made) < 4000)

        async def make() -> None:
            while len(made) < 4000:
                for _ in range(20 if outbox.has_room else 0):
                    made[name := str(len(made))] = clock.monotonic()
                    outbox.put(name, name)
                await asyncio.sleep(0.01)
            assert await outbox.flush(60) == 0

        await running(outbox.run(), make)

    run(work())
    assert len(behind) == 4000
    assert LATE <= max(behind) < 5.0


def test_a_server_that_takes_no_items_holds_nobody_up() -> None:
    async def work() -> bool:
        async def send(item: str) -> None:
            await asyncio.sleep(1000)

        outbox: Outbox[str] = Outbox("thing", send, VirtualClock(), random.Random(1), workers=1)
        outbox.put("a", "a")
        outbox.put("b", "b")
        await running(outbox.run(), lambda: outbox.flush(30))
        return outbox.has_room

    assert run(work())


def test_writes_that_fail_together_are_one_failure_to_wait_for() -> None:
    async def work() -> None:
        clock, written = VirtualClock(), []

        async def send(item: str) -> None:
            await asyncio.sleep(0.01)
            if clock.monotonic() < 1.0:
                raise ConnectionFailed("the server closed the connection", sent=True)
            written.append(clock.monotonic())

        outbox: Outbox[str] = Outbox("thing", send, clock, random.Random(1))
        for number in range(20):
            outbox.put(str(number), "x")
        await running(outbox.run(), lambda: outbox.flush(300))
        assert len(written) == 20
        assert written[-1] < 1 + 2 * 1.6, "a second without a server, and the second pause"

    run(work())


def test_an_outbox_never_sends_two_of_one_key_together() -> None:
    under_way: list[str] = []
    most = 0

    async def work() -> None:
        async def send(item: str) -> None:
            nonlocal most
            under_way.append(item)
            most = max(most, len(under_way))
            await asyncio.sleep(1)
            under_way.remove(item)

        outbox: Outbox[str] = Outbox("thing", send, VirtualClock(), random.Random(1))

        async def several() -> None:
            for number in range(5):
                outbox.put("key", str(number))
                await asyncio.sleep(0.4)
            await outbox.flush(60)

        await running(outbox.run(), several)

    run(work())
    assert most == 1
