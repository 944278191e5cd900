"""What a reflector believes: whatever lines come, in whatever order, its store becomes the server's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.http.client import ConnectionFailed
from policyengine.kube.watching.reflector import REWIND_AFTER
from policyengine.kube.watching.store import number
from tests.kube.scripted_server import (
    Answer,
    Asked,
    ScriptedServer,
    bookmark,
    config_map,
    event,
    failure,
    listed,
    watched,
)
from tests.kube.virtual_time import run
from tests.kube.watching.follower import Follower, follow, watches


@settings(max_examples=40)
@given(st.binary(max_size=60))
def test_garbage_never_changes_the_store(garbage: bytes) -> None:
    got = follow(listed(5, config_map("a", 3)), watched(garbage), watched(event("ADDED", config_map("b", 6))))
    assert got.store == {"a": "3", "b": "6"}


def test_garbage_instead_of_a_list_is_tried_again() -> None:
    got = follow(Answer(body=b'{"items": 3}'), Answer(body=b"<html>"), listed(5, config_map("a", 3)))
    assert got.seen == ["a@3"]


def test_duplicates_and_older_versions_change_nothing() -> None:
    got = follow(
        listed(5, config_map("a", 3)),
        watched(
            event("MODIFIED", config_map("a", 7)),
            event("MODIFIED", config_map("a", 7)),
            event("MODIFIED", config_map("a", 6)),
            event("ADDED", config_map("a", 3)),
            event("DELETED", config_map("a", 4)),
        ),
    )
    assert got.seen == ["a@3", "a@7"]


def test_a_list_older_than_what_was_seen_is_not_believed() -> None:
    got = follow(
        listed(50, config_map("a", 30), config_map("b", 40)),
        failure(410, "Expired"),
        listed(35, config_map("a", 30)),
        listed(50, config_map("a", 30), config_map("b", 40)),
        seconds=30,
    )
    assert got.seen == ["a@30", "b@40"]
    assert "has version 35, and 50 was seen: it lags behind" in got.problems[1]


def test_a_server_restored_from_a_backup_is_believed_after_a_while() -> None:
    def answer(asked: Asked) -> Answer:
        if asked.at == 0:
            return listed(50, config_map("a", 30)) if "watch" not in asked.query else failure(410)
        return listed(20, config_map("a", 10)) if "watch" not in asked.query else watched(2000.0)

    follower = Follower(ScriptedServer(handler=answer))
    run(follower.follow(REWIND_AFTER * 3))
    assert follower.seen == ["a@30", "a@10"]


def test_delete_and_create_of_one_name_is_one_change_to_the_new_uid() -> None:
    got = follow(
        listed(5, config_map("a", 3, uid="one")),
        watched(event("MODIFIED", config_map("a", 7, uid="two")), event("DELETED", config_map("a", 8, uid="one"))),
    )
    assert got.seen == ["a@3", "a@7"]
    assert got.store == {"a": "7"}


def test_an_object_that_cannot_be_read_is_reported_and_the_others_go_on() -> None:
    broken = config_map("a", 7)
    broken["data"] = [1]
    got = follow(
        listed(5, config_map("a", 3)),
        watched(event("MODIFIED", broken), event("ADDED", config_map("b", 8))),
        failure(410),
        listed(9, broken, config_map("b", 8)),
        seconds=5,
    )
    assert got.store == {"a": "3", "b": "8"}
    assert "ConfigMap `ns/a`" in got.problems[0]
    assert len(watches(got)) >= 2


@settings(max_examples=40)
@given(st.data())
def test_whatever_faults_come_the_store_equals_the_server_once_quiet(data: st.DataObject) -> None:
    """I7: a server with a random history, watches cut and repeated at random, versions forgotten at random."""
    steps = data.draw(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=25))
    history: list[tuple[int, str, dict[str, Any]]] = []
    truth: dict[str, dict[str, Any]] = {}
    for version, (name, alive) in enumerate(steps, start=10):
        if alive:
            kind = "MODIFIED" if name in truth else "ADDED"
            uid = truth[name]["metadata"]["uid"] if name in truth else f"{name}-{version}"
            truth[name] = config_map(name, version, uid)
            history.append((version, kind, truth[name]))
        elif name in truth:
            item = config_map(name, version, truth.pop(name)["metadata"]["uid"])
            history.append((version, "DELETED", item))
    now = {"version": 9}
    forgets = data.draw(st.booleans(), "whether a list may mend what a watch has missed")

    def state_at(version: int) -> list[dict[str, Any]]:
        alive: dict[str, dict[str, Any]] = {}
        for at, kind, item in history:
            if at <= version:
                if kind == "DELETED":
                    del alive[item["metadata"]["name"]]
                else:
                    alive[item["metadata"]["name"]] = item
        return list(alive.values())

    last = 9 + len(steps)

    def answer(asked: Asked) -> Answer | ConnectionFailed:
        quiet = asked.at > 600
        now["version"] = last if quiet else min(last, now["version"] + data.draw(st.integers(0, 4)))
        fault = 0 if quiet else data.draw(st.integers(0, 5))
        if "watch" not in asked.query:
            return failure(500) if fault == 1 else listed(now["version"], *state_at(now["version"]))
        since = int(asked.query["resourceVersion"])
        if fault == 1 and forgets:
            return failure(410)
        events: list[Any] = [event(kind, item) for at, kind, item in history if since < at <= now["version"]]
        if fault == 2:
            events = [one for one in events for _ in range(2)]
        if fault == 3:
            events = [*events[: len(events) // 2], b'{"type": "ADD']
        if fault == 5:
            odd = events[len(events) // 2 * 2 :]
            events = [one for pair in zip(events[1::2], events[::2], strict=False) for one in pair] + odd
        if fault == 4:
            return watched(*events[: len(events) // 2], ConnectionFailed("reset", sent=True, began=True))
        return watched(*events, *([] if quiet else [bookmark(now["version"])]), 10_000.0 if quiet else 5.0)

    follower = Follower(ScriptedServer(handler=answer))
    run(follower.follow(1500))
    assert follower.store == {name: item["data"]["v"] for name, item in truth.items()}


@pytest.mark.parametrize(
    ("version", "counts_as"),
    [("17", 17), ("9" * 39, int("9" * 39)), ("9" * 5_000, 0), ("latest", 0), ("", 0), ("-5", 0), ("1.5", 0)],
)
def test_what_a_version_counts_as(version: str, counts_as: int) -> None:
    assert number(version) == counts_as
