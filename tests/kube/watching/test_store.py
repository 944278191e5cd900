"""What a reflector believes: whatever lines come, in whatever order, its store becomes the server's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.http.client import ConnectionFailed
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
        if fault == 1:
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
