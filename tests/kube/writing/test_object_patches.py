"""What is sent to have an object changed, and what becomes of each answer."""

import asyncio

import pytest

from policyengine.framework.reservation import ObjectPatch
from policyengine.kube.http.client import Client
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.writing.object_patches import ObjectWriter, Outcome
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.messages import BindFailure, ObjectPatched, ObjectPatchFailed
from tests.kube.scripted_server import Answer, Asked, ScriptedServer, failure
from tests.kube.virtual_time import run

CLAIM = ObjectPatch("PersistentVolumeClaim", "ns", "c", "u1", "7", {"metadata": {"annotations": {"a": "b"}}})
VOLUME = ObjectPatch("PersistentVolume", "", "v", "u2", "8", {"spec": {"claimRef": {"name": "c"}}})
STATUS = ObjectPatch("ResourceClaim", "ns", "r", "u3", "9", {"status": {}}, "status")


def sent(patch: ObjectPatch, answer: Answer | ConnectionFailed) -> tuple[Asked, Outcome]:
    server = ScriptedServer(answer)
    outcomes: list[Outcome] = []

    async def work() -> None:
        answered = asyncio.Event()

        def take(outcome: Outcome) -> None:
            outcomes.append(outcome)
            answered.set()

        writer = ObjectWriter(Client(server), take)
        task = asyncio.ensure_future(writer.run())
        writer.post(PatchObject("p", 1, "Plugin", patch))
        assert writer.outstanding == 1
        await answered.wait()
        assert writer.outstanding == 0
        task.cancel()

    run(work())
    return server.asked[0], outcomes[0]


@pytest.mark.parametrize(
    ("patch", "path", "body"),
    [
        (
            CLAIM,
            "/api/v1/namespaces/ns/persistentvolumeclaims/c",
            {"metadata": {"annotations": {"a": "b"}, "uid": "u1", "resourceVersion": "7"}},
        ),
        (
            VOLUME,
            "/api/v1/persistentvolumes/v",
            {"spec": {"claimRef": {"name": "c"}}, "metadata": {"uid": "u2", "resourceVersion": "8"}},
        ),
        (
            STATUS,
            "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/r/status",
            {"status": {}, "metadata": {"uid": "u3", "resourceVersion": "9"}},
        ),
    ],
)
def test_a_patch_names_the_object_it_was_decided_for(patch: ObjectPatch, path: str, body: object) -> None:
    asked, outcome = sent(patch, Answer(200, {"metadata": {"resourceVersion": "12"}}))
    assert (asked.method, asked.path, asked.body) == ("PATCH", path, body)
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert outcome == ObjectPatched(PatchObject("p", 1, "Plugin", patch), "12")


@pytest.mark.parametrize(
    ("answer", "expected", "seconds"),
    [
        (failure(409, "Conflict"), BindFailure.CONFLICT, 0.0),
        (failure(404, "NotFound"), BindFailure.NOT_FOUND, 0.0),
        (failure(403, "Forbidden"), BindFailure.REFUSED, 0.0),
        (failure(422, "Invalid"), BindFailure.REFUSED, 0.0),
        (failure(429, retry_after="9"), BindFailure.OVERLOADED, 9.0),
        (failure(500), BindFailure.OVERLOADED, 0.0),
        (failure(504), BindFailure.OVERLOADED, 0.0),
        (ConnectionFailed("lost", sent=True), BindFailure.OVERLOADED, 0.0),
        (ConnectionFailed("refused", sent=False), BindFailure.OVERLOADED, 0.0),
    ],
)
def test_what_a_refusal_means_for_the_attempt(
    answer: Answer | ConnectionFailed, expected: BindFailure, seconds: float
) -> None:
    _, outcome = sent(CLAIM, answer)
    assert isinstance(outcome, ObjectPatchFailed)
    assert (outcome.failure, outcome.retry_after) == (expected, seconds)
