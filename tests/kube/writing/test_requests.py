"""What is sent for each action, held against what a real kube-scheduler sent, and what each answer means."""

from dataclasses import replace
from typing import Any

import pytest

from policyengine.framework.reservation import ObjectPatch
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.writing.writer import bind, bind_outcome, patch_object, read_pod
from policyengine.scheduler.actions import Bind, PatchObject, ReadPod
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    ObjectPatched,
    ObjectPatchFailed,
    PodDeleted,
    PodRead,
    ReadPodFailed,
)
from tests.kube.scripted_server import Answer, ScriptedServer, failure
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.writing.recorded_writes import recorded

LOST, REFUSED = ConnectionFailed("lost", sent=True), ConnectionFailed("refused", sent=False)
BIND = Bind("70aae557-a10d-4048-ac92-50d9d140604a", "default", "small", "node-1", "hash")
CLAIM = ObjectPatch("PersistentVolumeClaim", "ns", "c", "u1", "7", {"metadata": {"annotations": {"a": "b"}}})
VOLUME = ObjectPatch("PersistentVolume", "", "v", "u2", "8", {"spec": {"claimRef": {"name": "c"}}})
STATUS = ObjectPatch("ResourceClaim", "ns", "r", "u3", "9", {"status": {}}, "status")
GONE = PodDeleted("ns", "p", "uid-p")


def test_a_binding_is_posted_as_kube_scheduler_posted_it() -> None:
    server = ScriptedServer(Answer(201, {}))
    assert run(bind(Client(server), BIND)) == BindSucceeded(BIND.uid)
    path = "/api/v1/namespaces/default/pods/small/binding"
    assert (server.asked[0].path, server.asked[0].body) == (path, recorded(path))


def test_a_lost_answer_leaves_the_outcome_open_and_a_refused_connection_does_not() -> None:
    assert run(bind(Client(ScriptedServer(LOST)), BIND)) == BindUnknown(BIND.uid, "lost")
    refused = run(bind(Client(ScriptedServer(REFUSED)), BIND))
    assert refused == BindFailed(BIND.uid, BindFailure.OVERLOADED, "refused")


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
    outcome = bind_outcome("uid", ApiError(status, "", "because", 3.0))
    if failure_ is None:
        assert outcome == BindUnknown("uid", "because")
    else:
        assert outcome == BindFailed("uid", failure_, "because", 3.0)


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
        (  # what adds to a list, or takes from it, is made on any version
            replace(STATUS, strategic=True),
            "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/r/status",
            {"status": {}, "metadata": {"uid": "u3"}},
        ),
    ],
)
def test_a_patch_names_the_object_it_was_decided_for(patch: ObjectPatch, path: str, body: object) -> None:
    server = ScriptedServer(Answer(200, {"metadata": {"resourceVersion": "12"}}))
    outcome = run(patch_object(Client(server), PatchObject("p", 1, "Plugin", patch)))
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("PATCH", path, body)
    form = "strategic-merge-patch" if patch.strategic else "merge-patch"
    assert asked.headers["Content-Type"] == f"application/{form}+json"
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
def test_what_a_refused_patch_means_for_the_attempt(
    answer: Answer | ConnectionFailed, expected: BindFailure, seconds: float
) -> None:
    outcome = run(patch_object(Client(ScriptedServer(answer)), PatchObject("p", 1, "Plugin", CLAIM)))
    assert isinstance(outcome, ObjectPatchFailed)
    assert (outcome.failure, outcome.retry_after) == (expected, seconds)


class Seen:
    """What the watch told, up to version 7."""

    version, generation = "7", 0

    def __init__(self, knows: bool) -> None:
        self._knows = knows

    def seen(self, namespace: str, name: str) -> tuple[str, int]:
        return ("uid-p", 5) if self._knows else ("", 0)

    def uid(self, namespace: str, name: str) -> str:
        return self.seen(namespace, name)[0]


def pod(version: int, uid: str = "uid-p") -> Answer:
    return Answer(body={"metadata": {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": str(version)}})


def said(answer: Any, is_known: bool = True) -> Any:
    async def read() -> Any:
        client = Client(ScriptedServer(answer))
        history = ServerHistory(client, VirtualClock())
        found = await read_pod(client, Seen(is_known), history, ReadPod("uid-p", "ns", "p"))  # type: ignore[arg-type]
        return found if history.generation == 0 else "went back"

    return run(read())


@pytest.mark.parametrize("is_known", [True, False])
def test_a_pod_newer_than_all_that_the_watch_told_is_as_it_was_read(is_known: bool) -> None:
    outcome = said(pod(8), is_known)
    assert isinstance(outcome, PodRead)
    assert outcome.pod.metadata.resource_version == "8"


def test_an_older_one_that_the_watch_knows_is_as_it_was_read() -> None:
    assert isinstance(said(pod(6)), PodRead)


def test_an_older_one_that_the_watch_told_is_gone_is_gone() -> None:
    assert said(pod(7), is_known=False) == GONE


def test_one_that_is_older_than_it_was_seen_before_it_was_asked_for_shows_that_the_server_has_gone_back() -> None:
    assert said(pod(4)) == "went back"
    assert said(pod(4, uid="another")) != "went back"


def test_one_that_is_not_found_or_has_another_uid_is_gone() -> None:
    assert said(failure(404)) == GONE
    assert said(pod(9, uid="another")) == GONE


def test_a_refusal_is_passed_on_with_the_time_after_which_to_ask_again() -> None:
    assert said(failure(429, retry_after="7")) == ReadPodFailed("uid-p", 7.0)


def test_a_lost_connection_and_an_answer_that_is_no_pod_are_failures() -> None:
    assert said(ConnectionFailed("reset", sent=True)) == ReadPodFailed("uid-p")
    assert said(Answer(body=b"<html>")) == ReadPodFailed("uid-p")
