"""A reflector that is asked to be up to date before its reader decides anything."""

from __future__ import annotations

import asyncio

import pytest

from policyengine.cluster.kinds import BY_KIND
from policyengine.kube.http.client import ConnectionFailed
from tests.kube.scripted_server import Answer, Asked, ScriptedServer, config_map, failure, listed, watched
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.watching.follower import Follower, lists

SILENT = watched(1e6)


def catch_up(watch: Answer, refuses: int = 0, after: float = 10.0) -> tuple[Follower, float, dict[str, str]]:
    """The follower, how long it took to catch up, and what the store was then.

    The server lists `a` at version 5, and `c` from its tenth second on, but for `refuses` times; `watch` is its watch.
    """
    left = refuses

    def answer(asked: Asked) -> Answer:
        nonlocal left
        if "watch" in asked.query:
            return watch
        if asked.at < after:
            return listed(5, config_map("a", 5))
        left -= 1
        return failure(503) if left >= 0 else listed(9, config_map("c", 7))

    follower = Follower(ScriptedServer(handler=answer))

    async def both() -> tuple[float, dict[str, str]]:
        following = asyncio.ensure_future(follower.follow(1000.0))
        await asyncio.sleep(after)
        began = VirtualClock().monotonic()
        async with asyncio.timeout(300):
            await asyncio.gather(follower.reflector.catch_up(), follower.reflector.catch_up())
        took, known = VirtualClock().monotonic() - began, dict(follower.store)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return took, known

    return follower, *run(both())


@pytest.mark.parametrize(
    "watch",
    [SILENT, watched(ConnectionFailed("connection reset", sent=True, began=True)), Answer(lines=[], after=1e6)],
    ids=["silent", "pausing", "no headers"],
)
def test_the_kind_is_listed_at_once_whatever_its_watch_does(watch: Answer) -> None:
    follower, took, known = catch_up(watch)
    assert (took, known) == (0.0, {"c": "7"})
    assert lists(follower) == 2


def test_a_server_that_refuses_at_first_is_asked_again() -> None:
    _, took, known = catch_up(SILENT, refuses=2)
    assert 1 < took < 10
    assert known == {"c": "7"}


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
