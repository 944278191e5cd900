"""What is said of a pod that was read: what the server has, unless the watch knows better."""

from typing import Any

import pytest

from policyengine.kube.http.client import Client
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.writing.pod_reader import Outcome, PodReader
from policyengine.scheduler.actions import ReadPod
from policyengine.scheduler.messages import PodDeleted, PodRead, ReadPodFailed
from tests.kube.scripted_server import Answer, ScriptedServer, failure
from tests.kube.virtual_time import run

ASKED = ReadPod("uid-p", "ns", "p")
GONE = PodDeleted("ns", "p", "uid-p")


class Seen:
    """What the watch told, up to version 7."""

    version = 7

    def __init__(self, knows: bool) -> None:
        self._knows = knows

    def knows(self, namespace: str, name: str, uid: str) -> bool:
        return self._knows


def pod(version: int, uid: str = "uid-p") -> Answer:
    return Answer(body={"metadata": {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": str(version)}})


def said(answer: Any, is_known: bool = True) -> Outcome:
    async def work() -> Outcome:
        reader = PodReader(Client(ScriptedServer(answer)), Seen(is_known), lambda outcome: None)  # type: ignore[arg-type]
        return await reader._do(ASKED)

    return run(work())


@pytest.mark.parametrize("is_known", [True, False])
def test_a_pod_newer_than_all_that_the_watch_told_is_as_it_was_read(is_known: bool) -> None:
    outcome = said(pod(8), is_known)
    assert isinstance(outcome, PodRead)
    assert outcome.pod.metadata.resource_version == "8"


def test_an_older_one_that_the_watch_knows_is_as_it_was_read() -> None:
    assert isinstance(said(pod(6)), PodRead)


def test_an_older_one_that_the_watch_told_is_gone_is_gone() -> None:
    assert said(pod(7), is_known=False) == GONE


def test_one_that_is_not_found_or_has_another_uid_is_gone() -> None:
    assert said(failure(404)) == GONE
    assert said(pod(9, uid="another")) == GONE


def test_a_refusal_is_passed_on_with_the_time_after_which_to_ask_again() -> None:
    assert said(failure(429, retry_after="7")) == ReadPodFailed("uid-p", 7.0)


def test_a_lost_connection_and_an_answer_that_is_no_pod_are_failures() -> None:
    assert said(ConnectionFailed("reset", sent=True)) == ReadPodFailed("uid-p")
    assert said(Answer(body=b"<html>")) == ReadPodFailed("uid-p")
