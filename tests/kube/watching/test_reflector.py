"""What a reflector asks for: lists, watches, resumed where they ended, with pauses where nothing helps."""

import asyncio
import json
import random
from itertools import pairwise
from typing import Any

import pytest

from policyengine.cluster.kinds import CONFIG_MAPS, PODS
from policyengine.kube.http.client import Client, ConnectionFailed
from policyengine.kube.watching.reflector import STALL_AFTER, Reflector
from policyengine.kube.watching.store import Observed
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
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.watching.follower import Follower, follow, lists, watches


def test_a_list_is_followed_by_a_watch_from_its_version() -> None:
    got = follow(
        listed(5, config_map("a", 3)), watched(event("ADDED", config_map("b", 6)), event("DELETED", config_map("a", 7)))
    )
    assert got.seen == ["a@3", "b@6", "-a"]
    assert watches(got)[:2] == ["5", "7"]


def test_pages_are_asked_for_until_there_is_no_continuation() -> None:
    got = follow(listed(5, config_map("a", 3), continue_="next"), listed(5, config_map("b", 4)))
    assert got.seen == ["a@3", "b@4"]
    assert [one.query.get("continue") for one in got.server.asked[:2]] == [None, "next"]
    assert {one.query["limit"] for one in got.server.asked[:2]} == {str(CONFIG_MAPS.page)}


def test_the_selectors_of_a_kind_are_sent_with_list_and_watch() -> None:
    server = ScriptedServer(Answer(body={"metadata": {"resourceVersion": "1"}, "items": []}))

    async def first_two() -> None:
        reflector = Reflector(Client(server), PODS, VirtualClock(), random.Random(1), label_selector="a=b")
        try:
            async with asyncio.timeout(1):
                async for _ in reflector.changes():
                    pass
        except TimeoutError:
            pass

    run(first_two())
    for asked in server.asked:
        assert asked.query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"
        assert asked.query["labelSelector"] == "a=b"
    assert server.asked[1].query["allowWatchBookmarks"] == "true"
    assert 300 <= int(server.asked[1].query["timeoutSeconds"]) <= 600


def test_synced_is_set_only_when_the_whole_list_was_yielded() -> None:
    states = []

    class Watching(Follower):
        def _take(self, change: Any) -> None:
            super()._take(change)
            states.append(self.reflector.synced.is_set())

    server = ScriptedServer(
        listed(5, config_map("a", 3), config_map("b", 4)), watched(event("ADDED", config_map("c", 6)))
    )
    run(Watching(server).follow(1))
    assert states == [False, False, True]


def test_lines_that_arrive_together_come_together_and_those_before_a_broken_one_are_not_lost() -> None:
    batches: list[list[str]] = []
    lines = [json.dumps(event("ADDED", config_map(name, version))).encode() for name, version in (("a", 6), ("b", 7))]

    answer = watched(b"\n".join([*lines, b"{", lines[0]]))
    server = ScriptedServer(listed(5), answer, watched(event("ADDED", config_map("c", 8))))

    async def work() -> None:
        reflector = Reflector(Client(server), CONFIG_MAPS, VirtualClock(), random.Random(1))
        try:
            async with asyncio.timeout(60):
                async for batch in reflector.batches():
                    names = [change.object.metadata.name for change in batch]
                    batches.append(names)
        except TimeoutError:
            pass

    run(work())
    assert batches == [["a", "b"], ["c"]]
    assert [one.query["resourceVersion"] for one in server.asked if "watch" in one.query][:2] == ["5", "7"]


def test_a_continuation_that_expired_starts_the_list_over_and_deletes_nothing() -> None:
    got = follow(
        listed(5, config_map("a", 3), continue_="next"),
        failure(410, "Expired"),
        listed(6, config_map("a", 3), config_map("b", 4)),
    )
    assert got.seen == ["a@3", "b@4"]


def test_a_lost_connection_resumes_from_the_last_version_without_a_list() -> None:
    lost = ConnectionFailed("connection reset", sent=True, began=True)
    got = follow(
        listed(5),
        watched(event("ADDED", config_map("a", 6)), lost),
        watched(event("MODIFIED", config_map("a", 7))),
    )
    assert got.seen == ["a@6", "a@7"]
    assert watches(got)[:3] == ["5", "6", "7"]
    assert lists(got) == 1
    assert "connection reset" in got.problems[0]


def test_bookmarks_move_the_version_a_watch_resumes_from() -> None:
    got = follow(listed(5), watched(bookmark(40)), watched())
    assert watches(got)[:2] == ["5", "40"]


def test_a_silent_watch_is_given_up_and_resumed() -> None:
    silent = watched(event("ADDED", config_map("a", 6)), 10_000.0)
    got = follow(listed(5), silent, watched(event("ADDED", config_map("b", 7))), seconds=STALL_AFTER + 10)
    assert got.seen == ["a@6", "b@7"]
    assert silent.closed
    assert "silent" in got.problems[0]


def test_a_watch_whose_headers_never_come_is_given_up() -> None:
    slow = Answer(lines=[], after=10_000.0)
    got = follow(listed(5), slow, watched(event("ADDED", config_map("b", 7))), seconds=STALL_AFTER + 10)
    assert got.seen == ["b@7"]


def test_a_slow_reader_does_not_count_as_a_silent_server() -> None:
    async def slowly() -> list[str]:
        server = ScriptedServer(
            listed(5), watched(event("ADDED", config_map("a", 6)), event("ADDED", config_map("b", 7)))
        )
        reflector = Reflector(Client(server), CONFIG_MAPS, VirtualClock(), random.Random(1))
        seen = []
        async for change in reflector.changes():
            assert isinstance(change, Observed)
            seen.append(change.object.metadata.name)
            await asyncio.sleep(STALL_AFTER * 3)
            if len(seen) == 2:
                return seen
        return seen

    assert run(slowly()) == ["a", "b"]


def test_retry_after_is_honoured_and_spread() -> None:
    got = follow(failure(429, "TooManyRequests", retry_after="7"), listed(5, config_map("a", 3)))
    first, second = got.server.asked[:2]
    assert 7 < second.at - first.at < 9


def test_a_burst_of_errors_backs_off_and_does_not_list_again() -> None:
    got = follow(listed(5), *[failure(503) for _ in range(6)], watched(event("ADDED", config_map("a", 6))))
    assert lists(got) == 1
    assert got.seen == ["a@6"]
    times = [one.at for one in got.server.asked if "watch" in one.query][:7]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(gap >= 0.8 * 2**step for step, gap in enumerate(gaps[:5]))
    assert sum(gaps) < 120


def test_connections_that_somebody_cuts_every_minute_are_resumed_as_soon_the_last_time_as_the_first() -> None:
    versions = iter(range(6, 1000))

    def answer(asked: Asked) -> Answer:
        if "watch" not in asked.query:
            return listed(5)
        return watched(bookmark(next(versions)), 60.0, ConnectionFailed("connection reset", sent=True, began=True))

    follower = Follower(ScriptedServer(handler=answer))
    run(follower.follow(3600))
    times = [one.at for one in follower.server.asked if "watch" in one.query]
    assert max(later - earlier for earlier, later in pairwise(times)) < 60 + 2 * 0.8


@pytest.mark.parametrize("sent", [False, True], ids=["refused", "cut by a load balancer"])
def test_an_unreachable_server_is_tried_again_every_few_seconds_and_spoken_of_twice_a_minute(sent: bool) -> None:
    def refuse(asked: Asked) -> ConnectionFailed:
        return ConnectionFailed("nobody is there", sent=sent)

    follower = Follower(ScriptedServer(handler=refuse))
    run(follower.follow(300))
    times = [one.at for one in follower.server.asked]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) > 0.8 and min(gaps[1:]) > 1.5 and max(gaps) < 3
    assert 8 <= len(follower.problems) <= 10


def test_watches_that_end_at_once_are_not_resumed_in_a_hot_loop() -> None:
    def answer(asked: Asked) -> Answer:
        return watched() if "watch" in asked.query else listed(5)

    follower = Follower(ScriptedServer(handler=answer))
    run(follower.follow(300))
    assert len(follower.server.asked) < 30


def test_a_list_that_is_refused_is_told_once_and_again_when_that_changes() -> None:
    def refused(why: str) -> Answer:
        return failure(403, "Forbidden", why)

    got = follow(*[refused("no role")] * 5, *[refused("no such role")] * 3, listed(5), *[refused("no role")] * 4)
    assert [problem for problem in got.problems if "role" in problem] == [
        "cannot list configmaps: no role; trying again until it is allowed",
        "cannot list configmaps: no such role; trying again until it is allowed",
        "cannot watch configmaps: no role; trying again until it is allowed",
    ]


def test_a_refusal_after_a_success_is_told_again() -> None:
    refused = failure(403, "Forbidden", "no role")
    got = follow(listed(5), refused, refused, watched(event("ADDED", config_map("a", 6))), refused, refused)
    told = [problem for problem in got.problems if "role" in problem]
    assert told == ["cannot watch configmaps: no role; trying again until it is allowed"] * 2


def test_versions_that_are_no_numbers_are_followed_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    first, second = event("ADDED", config_map("b", "xyz")), event("MODIFIED", config_map("b", "abc"))
    got = follow(listed("first", config_map("a", "klm")), watched(first), watched(second), watched(1e6))
    assert got.seen == ["a@klm", "b@xyz", "b@abc"]
    assert watches(got)[:3] == ["first", "xyz", "abc"]
    assert [one.message for one in caplog.records] == [
        "the API server's version `first` is no number: whether such a server goes back is not found out"
    ]
