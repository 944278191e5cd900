"""A custom kind that is absent is found as soon as its definition serves it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from policyengine.cluster.kinds import CONFIG_MAPS, definition_of
from policyengine.kube.http.client import ConnectionFailed
from policyengine.kube.watching.absent_kinds import ABSENT_FOR
from policyengine.kube.watching.reflector import STALL_AFTER
from tests.kube.scripted_server import Asked, ScriptedServer, config_map, event, failure, gone, listed, watched
from tests.kube.virtual_time import run
from tests.kube.watching import follower

KIND = replace(CONFIG_MAPS, group_path="/apis/example.com/v1", is_optional=True, is_custom=True)
DEFINITIONS = definition_of(KIND).path()
ABSENT = failure(404, "NotFound")
FOUND = listed(5, config_map("a", 3))
OPEN: list[Any] = [1e9]


def definition(version: str = "v1", established: str = "True", **meta: Any) -> dict[str, Any]:
    conditions = [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": established}]
    return {
        "metadata": {"name": "configmaps.example.com", "uid": "u", "resourceVersion": "4", **meta},
        "spec": {"versions": [{"name": version, "served": True}]},
        "status": {"conditions": conditions},
    }


def follow(seconds: float, *script: Any) -> follower.Follower:
    return follower.follow(*script, seconds=seconds, resource=KIND)


def lists(got: follower.Follower) -> list[float]:
    """When the kind was listed."""
    return [one.at for one in got.server.asked if one.path == KIND.path() and "watch" not in one.query]


def heard(*lines: Any) -> Any:
    """A watch of the definition, which stays open behind these lines."""
    return watched(*lines, *OPEN)


def test_the_kind_is_listed_the_moment_its_definition_is_established() -> None:
    later = {**definition(), "metadata": definition()["metadata"] | {"resourceVersion": "6"}}
    words = event("ADDED", definition(established="False")), 40.0, event("MODIFIED", later)
    got = follow(41, ABSENT, heard(*words), FOUND, watched(*OPEN))
    assert got.seen == ["a@3"] and not got.problems
    assert [round(at - lists(got)[0], 3) for at in lists(got)] == [0, 40]


def test_only_the_one_definition_is_watched_from_what_is_there_and_until_the_kind_is() -> None:
    definitions = heard(event("ADDED", definition()))
    got = follow(41, ABSENT, definitions, FOUND, watched(*OPEN))
    (asked,) = [one for one in got.server.asked if one.path == DEFINITIONS]
    assert asked.query["fieldSelector"] == "metadata.name=configmaps.example.com"
    assert (asked.query["watch"], asked.query["resourceVersion"]) == ("true", "")
    assert definitions.closed


@pytest.mark.parametrize(
    "word",
    [
        definition(established="False"),
        definition("v2"),
        definition(deletionTimestamp="2026-01-01T00:00:00Z"),
        {"metadata": {"name": "configmaps.example.com", "uid": "u"}, "spec": {"versions": None}, "status": None},
        {"metadata": {"name": "configmaps.example.com", "uid": "u"}, "spec": 7},
    ],
    ids=["not established", "another version", "on its way out", "without a status", "unreadable"],
)
def test_a_definition_that_does_not_serve_the_version_is_no_reason_to_ask(word: dict[str, Any]) -> None:
    got = follow(STALL_AFTER - 1, ABSENT, heard(event("ADDED", word)))
    assert len(lists(got)) == 1


def test_a_kind_that_went_away_and_comes_again_is_found_again() -> None:
    kind = follow(
        140,
        *(ABSENT, heard(30.0, event("ADDED", definition())), FOUND, watched(20.0), ABSENT),
        *(heard(30.0, event("ADDED", definition())), listed(9, config_map("a", 8)), watched(*OPEN)),
    )
    assert kind.seen == ["a@3", "-a", "a@8"] and not kind.problems


def test_a_definition_that_says_served_before_the_server_serves_it_makes_no_hot_loop() -> None:
    def answer(asked: Asked) -> Any:
        return heard(event("ADDED", definition())) if asked.path == DEFINITIONS else ABSENT

    got = follower.Follower(ScriptedServer(handler=answer), KIND)
    run(got.follow(100))
    waits = [after - before for before, after in zip(lists(got), lists(got)[1:], strict=False)]
    assert waits[1] < 0.5 and all(ABSENT_FOR <= one <= 2 * ABSENT_FOR for one in waits[8:]) and len(waits) < 30


REFUSALS = {
    "without the right": failure(403, "Forbidden"),
    "a server without definitions": ABSENT,
    "a watch that ends at once": watched(),
    "a watch that fails": watched(gone()),
    "no watch event": watched(b"{"),
    "no connection": ConnectionFailed("reset", sent=True, began=True),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
def test_where_it_cannot_be_watched_the_kind_is_asked_for_every_five_seconds(
    refusal: Any, caplog: pytest.LogCaptureFixture
) -> None:
    served = 12.0

    def answer(asked: Asked) -> Any:
        if asked.path == DEFINITIONS:
            return refusal
        if "watch" in asked.query:
            return watched(*OPEN)
        return FOUND if asked.at - server.asked[0].at > served else ABSENT

    server = ScriptedServer(handler=answer)
    got = follower.Follower(server, KIND)
    with caplog.at_level(logging.DEBUG, "policyengine.kube.watching.absent_kinds"):
        run(got.follow(100))
    assert got.seen == ["a@3"] and not got.problems
    assert [round(at - lists(got)[0], 3) for at in lists(got)] == [0, ABSENT_FOR, 2 * ABSENT_FOR, 3 * ABSENT_FOR]
    levels = [one.levelname for one in caplog.records]
    assert levels == ([] if refusal is REFUSALS["a watch that ends at once"] else ["DEBUG"])


def test_a_watch_that_is_silent_for_long_is_opened_again_behind_a_list() -> None:
    got = follow(2.5 * STALL_AFTER, ABSENT, heard(), ABSENT, heard(), ABSENT, heard())
    assert [round(at - lists(got)[0]) for at in lists(got)] == [0, STALL_AFTER, 2 * STALL_AFTER]
    assert sum(one.path == DEFINITIONS for one in got.server.asked) == 3
