"""Bindings, held against what a real kube-scheduler posted, and what each answer means."""

import asyncio
from typing import Any

import pytest

from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.writing.bindings import Binder, outcome_of
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import BindFailed, BindFailure, BindSucceeded, BindUnknown
from tests.kube.scripted_server import Answer, Asked, ScriptedServer, failure
from tests.kube.virtual_time import run
from tests.kube.writing.recorded_writes import recorded


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
