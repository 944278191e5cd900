import asyncio
import json
import random
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.cluster.objects import ConfigMap
from policyengine.kube.client import Client
from policyengine.kube.known_objects import Deleted, Observed
from policyengine.kube.reflector import REWIND_AFTER, STALL_AFTER, Reflector
from policyengine.kube.resources import CONFIG_MAPS, PODS
from policyengine.kube.transport import ConnectionFailed
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


class Follower:
    """A reflector on a scripted server, and the store its changes make."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.problems: list[str] = []
        self.seen: list[str] = []
        self.store: dict[str, str] = {}
        self.reflector: Reflector[ConfigMap]

    async def follow(self, seconds: float) -> None:
        self.reflector = Reflector(
            Client(self.server), CONFIG_MAPS, VirtualClock(), random.Random(1), on_problem=self.problems.append
        )
        try:
            async with asyncio.timeout(seconds):
                async for change in self.reflector.changes():
                    self._take(change)
        except TimeoutError:
            pass

    def _take(self, change: Any) -> None:
        if isinstance(change, Deleted):
            self.seen.append(f"-{change.name}")
            del self.store[change.name]
        else:
            assert isinstance(change, Observed)
            name, version = change.object.metadata.name, change.object.data["v"]
            self.seen.append(f"{name}@{version}")
            self.store[name] = version


def follow(*script: Any, seconds: float = 1000.0) -> Follower:
    follower = Follower(ScriptedServer(*script))
    run(follower.follow(seconds))
    return follower


def watches(follower: Follower) -> list[str]:
    return [one.query["resourceVersion"] for one in follower.server.asked if "watch" in one.query]


def lists(follower: Follower) -> int:
    return sum("watch" not in one.query for one in follower.server.asked)


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
    assert {one.query["limit"] for one in got.server.asked[:2]} == {"500"}


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


def test_a_410_at_the_start_of_a_watch_lists_again_and_finds_what_was_missed() -> None:
    got = follow(
        listed(5, config_map("a", 3), config_map("b", 4)),
        failure(410, "Expired"),
        listed(9, config_map("b", 8), config_map("c", 9)),
    )
    assert got.seen == ["a@3", "b@4", "b@8", "c@9", "-a"]


def test_a_410_as_an_error_event_lists_again() -> None:
    got = follow(listed(5, config_map("a", 3)), watched(event("ADDED", config_map("b", 6)), gone()), listed(9))
    assert got.seen == ["a@3", "b@6", "-a", "-b"] or got.seen == ["a@3", "b@6", "-b", "-a"]
    assert lists(got) == 2


def test_a_continuation_that_expired_starts_the_list_over_and_deletes_nothing() -> None:
    got = follow(
        listed(5, config_map("a", 3), continue_="next"),
        failure(410, "Expired"),
        listed(6, config_map("a", 3), config_map("b", 4)),
    )
    assert got.seen == ["a@3", "b@4"]


def test_a_lost_connection_resumes_from_the_last_version_without_a_list() -> None:
    lost = ConnectionFailed("connection reset", sent=True)
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


def test_a_truncated_line_reconnects_and_applies_nothing_of_it() -> None:
    line = b'{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"ns","uid":"uid-a","resou'
    got = follow(
        listed(5, config_map("a", 3)),
        watched(line, event("DELETED", config_map("a", 9))),
        watched(event("MODIFIED", config_map("a", 6))),
    )
    assert got.seen == ["a@3", "a@6"]
    assert watches(got)[:2] == ["5", "5"]


@settings(max_examples=60, deadline=None)
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


def test_a_deleted_object_does_not_come_back_by_a_late_event() -> None:
    got = follow(
        listed(5, config_map("a", 3)),
        watched(event("DELETED", config_map("a", 7)), event("MODIFIED", config_map("a", 6))),
    )
    assert got.store == {}


def test_lines_out_of_order_lose_nothing() -> None:
    got = follow(
        listed(5, config_map("a", 3), config_map("b", 4)),
        watched(
            event("MODIFIED", config_map("b", 7)),
            event("MODIFIED", config_map("a", 6)),
            event("DELETED", config_map("c", 9)),
            event("ADDED", config_map("c", 8)),
        ),
    )
    assert got.store == {"a": "6", "b": "7"}
    assert watches(got)[:2] == ["5", "9"]


def test_an_object_that_comes_back_into_the_selection_is_seen() -> None:
    got = follow(
        listed(5, config_map("a", 3)),
        watched(event("DELETED", config_map("a", 6)), event("ADDED", config_map("a", 7))),
    )
    assert got.seen == ["a@3", "-a", "a@7"]


def test_a_list_older_than_what_was_seen_is_not_believed() -> None:
    got = follow(
        listed(50, config_map("a", 30), config_map("b", 40)),
        failure(410, "Expired"),
        listed(35, config_map("a", 30)),
        listed(50, config_map("a", 30), config_map("b", 40)),
        seconds=30,
    )
    assert got.seen == ["a@30", "b@40"]
    assert "older than 50" in got.problems[1]


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


def test_a_missed_delete_is_found_by_the_next_list() -> None:
    got = follow(
        listed(5, config_map("a", 3, uid="one"), config_map("b", 4)),
        failure(410),
        listed(9, config_map("a", 8, uid="two")),
    )
    assert got.seen == ["a@3", "b@4", "a@8", "-b"]


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
        return watched(bookmark(next(versions)), 60.0, ConnectionFailed("connection reset", sent=True))

    follower = Follower(ScriptedServer(handler=answer))
    run(follower.follow(3600))
    times = [one.at for one in follower.server.asked if "watch" in one.query]
    assert max(later - earlier for earlier, later in pairwise(times)) < 60 + 2 * 0.8


def test_an_unreachable_server_is_tried_again_with_growing_pauses() -> None:
    def refuse(asked: Asked) -> ConnectionFailed:
        return ConnectionFailed("connection refused", sent=False)

    follower = Follower(ScriptedServer(handler=refuse))
    run(follower.follow(300))
    assert 10 < len(follower.server.asked) < 25


def test_watches_that_end_at_once_are_not_resumed_in_a_hot_loop() -> None:
    def answer(asked: Asked) -> Answer:
        return watched() if "watch" in asked.query else listed(5)

    follower = Follower(ScriptedServer(handler=answer))
    run(follower.follow(300))
    assert len(follower.server.asked) < 30


@settings(max_examples=60, deadline=None)
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
            return watched(*events[: len(events) // 2], ConnectionFailed("reset", sent=True))
        return watched(*events, *([] if quiet else [bookmark(now["version"])]), 10_000.0 if quiet else 5.0)

    follower = Follower(ScriptedServer(handler=answer))
    run(follower.follow(1500))
    assert follower.store == {name: item["data"]["v"] for name, item in truth.items()}
