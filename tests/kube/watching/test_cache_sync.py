"""A reflector that is asked to be up to date before its reader decides anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from policyengine.cluster.kinds import BY_KIND
from policyengine.kube.http.client import ConnectionFailed
from policyengine.kube.watching import reflector
from policyengine.kube.watching.reflector import CATCH_UP, CATCH_UP_WATCH, WATCH_SECONDS
from tests.kube.scripted_server import (
    Answer,
    Asked,
    ScriptedServer,
    bookmark,
    config_map,
    event,
    failure,
    gone,
    listed,
    watched,
)
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.watching.follower import Follower

NEW = event("ADDED", config_map("b", 8))


class Server:
    """Lists `a` at version 5; says nothing on a long watch, and `short` on one that hurries. It is at `version`."""

    def __init__(self, *short: Any, version: int = 9, refuses: int = 0) -> None:
        self.version = version
        self.refuses = refuses
        self.long: Answer = watched(1e6)
        self._short = list(short)

    def __call__(self, asked: Asked) -> Answer:
        if asked.query.get("limit") == "1":
            self.refuses -= 1
            return failure(503) if self.refuses >= 0 else listed(self.version, config_map("a", 5))
        if "watch" not in asked.query:
            again = asked.at > 0
            return listed(self.version, config_map("c", 7)) if again else listed(5, config_map("a", 5))
        return watched(*self._short) if asked.query["timeoutSeconds"] == str(CATCH_UP_WATCH) else self.long


def catch_up(server: Server, after: float = 10.0, then: float = 0.0) -> tuple[Follower, float, dict[str, str]]:
    """The follower, how long it took to catch up, and what the store was then; it goes on for `then` seconds."""
    follower = Follower(ScriptedServer(handler=server))

    async def both() -> tuple[float, dict[str, str]]:
        following = asyncio.ensure_future(follower.follow(1000.0))
        await asyncio.sleep(after)
        began = VirtualClock().monotonic()
        async with asyncio.timeout(300):
            await follower.reflector.catch_up()
        took, known = VirtualClock().monotonic() - began, dict(follower.store)
        await asyncio.sleep(then)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return took, known

    return follower, *run(both())


@pytest.fixture(autouse=True)
def nothing_is_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "FEW", 0)


def test_a_kind_of_few_objects_is_listed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "FEW", 1)
    follower, took, known = catch_up(Server())
    assert (took, known) == (0.0, {"c": "7"})
    assert sum("watch" not in asked.query for asked in follower.server.asked) == 3  # at first, its version, and again


def test_a_bookmark_soon_says_that_nothing_is_missing() -> None:
    follower, took, known = catch_up(Server(1.0, bookmark(9), 2.0))
    assert (took, known) == (1.0, {"a": "5"})
    asked = follower.server.asked[-1].query
    assert (asked["resourceVersion"], asked["timeoutSeconds"]) == ("5", "3")


def test_what_a_silent_watch_kept_back_is_known_first() -> None:
    _, took, known = catch_up(Server(NEW, 1.0, bookmark(9), 2.0))
    assert (took, known) == (1.0, {"a": "5", "b": "8"})


def test_nothing_is_asked_of_a_watch_that_is_there_already() -> None:
    server = Server()
    server.long = watched(bookmark(9), 1e6)
    follower, took, _ = catch_up(server)
    assert took == 0.0
    assert sum("watch" in asked.query for asked in follower.server.asked) == 1


def test_a_watch_that_ends_without_a_bookmark_is_followed_by_a_list() -> None:
    _, took, known = catch_up(Server(float(CATCH_UP_WATCH)))
    assert known == {"c": "7"}
    assert CATCH_UP_WATCH <= took < CATCH_UP_WATCH + 1


def test_a_watch_that_stays_silent_is_followed_by_a_list() -> None:
    _, took, known = catch_up(Server(1e6))
    assert known == {"c": "7"}
    assert CATCH_UP <= took < CATCH_UP + 1


def test_a_version_that_the_server_forgot_is_followed_by_a_list() -> None:
    _, took, known = catch_up(Server(gone()))
    assert known == {"c": "7"}
    assert took < 1


def test_a_server_that_refuses_at_first_is_asked_again() -> None:
    _, took, _ = catch_up(Server(1.0, bookmark(9), 2.0, refuses=2))
    assert 1 < took < 10


def test_a_pause_that_began_before_is_cut_short() -> None:
    server = Server(1.0, bookmark(9), 2.0)
    server.long = watched(ConnectionFailed("connection reset", sent=True))
    _, took, known = catch_up(server, after=100.0)
    assert (took, known) == (1.0, {"a": "5"})


def test_afterwards_watches_are_long_again() -> None:
    follower, _, _ = catch_up(Server(1.0, bookmark(9), 2.0), then=10.0)
    shortest, longest = WATCH_SECONDS
    assert shortest <= int(follower.server.asked[-1].query["timeoutSeconds"]) <= longest


def test_a_kind_that_is_not_served_has_nothing_to_catch_up_with() -> None:
    follower = Follower(ScriptedServer(handler=lambda asked: failure(404, "NotFound")))

    async def both() -> None:
        following = asyncio.ensure_future(follower.follow(1000.0))
        await asyncio.sleep(1)
        follower.reflector.resource = BY_KIND["PodGroup"]
        async with asyncio.timeout(10):
            await follower.reflector.catch_up()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    run(both())
