"""What goes first, how many at once, and what becomes of writes that a server fails."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.kube.http.client import ApiError, ConnectionFailed
from policyengine.kube.http.rate_limit import TokenBucket
from policyengine.kube.writing.request_queue import BACKLOG, RequestQueue
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.writing.recorded_writes import running

DOWN = ConnectionFailed("the server is down", sent=True)


def played(fill: Callable[[RequestQueue, Any], Awaitable[None]], seconds: float = 300.0, **how: Any) -> RequestQueue:
    """A queue that is filled, and runs until everything is written."""

    async def work() -> RequestQueue:
        clock = VirtualClock()
        if "qps" in how:
            how["limiter"] = TokenBucket(clock, how.pop("qps"), how.pop("burst"))
        queue = RequestQueue(clock, random.Random(1), **how)

        async def several() -> None:
            await fill(queue, clock)
            await queue.flush(seconds)

        await running(queue.run(), several)
        return queue

    return run(work())


class Server:
    """Takes `seconds` for a request; notes what arrived when."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.arrived: list[tuple[float, str]] = []
        self.under_way: list[str] = []
        self.most = 0

    async def take(self, name: str) -> None:
        self.arrived.append((asyncio.get_running_loop().time(), name))
        self.under_way.append(name)
        self.most = max(self.most, len(self.under_way))
        await asyncio.sleep(self.seconds)
        self.under_way.remove(name)

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.arrived]


def test_urgent_requests_go_first_and_each_kind_in_its_order() -> None:
    server = Server(1.0)

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        for number in range(3):
            queue.write(f"w{number}", server.take, f"w{number}")
        for number in range(3):
            queue.send(lambda number=number: server.take(f"u{number}"))

    played(fill, workers=1)
    assert server.names == ["u0", "u1", "u2", "w0", "w1", "w2"]


def test_no_more_are_under_way_than_workers_and_slow_writes_leave_some_to_the_urgent() -> None:
    server = Server(100.0)

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        for number in range(20):
            queue.write(f"w{number}", server.take, f"w{number}")
        await asyncio.sleep(1)
        assert len(server.under_way) == 6
        for number in range(5):
            queue.send(lambda number=number: server.take(f"u{number}"))
        await asyncio.sleep(1)
        assert [name for name in server.under_way if name[0] == "u"] == ["u0", "u1"]

    played(fill, 600.0, workers=8)
    assert server.most == 8 and len(server.arrived) == 25


def test_a_request_is_chosen_when_there_is_a_token_for_it() -> None:
    server = Server()

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        for number in range(4):
            queue.write(f"w{number}", server.take, f"w{number}")
        await asyncio.sleep(1.5)
        queue.send(lambda: server.take("urgent"))

    played(fill, qps=1, burst=1)
    assert server.names == ["w0", "w1", "urgent", "w2", "w3"]
    assert [round(at) for at, _ in server.arrived] == [0, 1, 2, 3, 4]


def test_two_writes_of_a_key_are_never_under_way_together_and_the_latest_is_written() -> None:
    server = Server(1.0)

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        for number in range(5):
            queue.write("key", server.take, str(number))
            await asyncio.sleep(0.4)

    played(fill)
    assert server.most == 1 and server.names[-1] == "4"


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_of_a_settled_key_is_written_after_the_write_under_way(fails: bool) -> None:
    tried: list[str] = []

    async def write(item: str) -> None:
        tried.append(item)
        await asyncio.sleep(5)
        if fails:
            raise DOWN

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        queue.write("pod", write, "one")
        await asyncio.sleep(1)
        queue.write("pod", write, "two")
        assert queue.peek("pod") == "two"
        under_way = queue.settle("pod")
        assert under_way is not None
        await under_way
        assert clock.monotonic() == 5.0 and queue.settle("pod") is None

    assert played(fill).backlog == 0
    assert tried == ["one"]


def test_writes_that_fail_together_are_one_failure_to_wait_for() -> None:
    written: list[float] = []

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        async def write(item: int) -> None:
            await asyncio.sleep(0.01)
            if clock.monotonic() < 1.0:
                raise DOWN
            written.append(clock.monotonic())

        for number in range(20):
            queue.write(str(number), write, number)

    played(fill)
    assert len(written) == 20
    assert written[-1] < 1 + 2 * 1.6, "a second without a server, and the second pause"


def test_a_write_waits_for_the_tokens_of_as_many_bindings_and_writes_as_may_wait() -> None:
    async def waits(qps: float) -> float:
        clock = VirtualClock()
        limiter = TokenBucket(clock, qps, 10) if qps else None
        return RequestQueue(clock, random.Random(1), limiter=limiter).longest_wait

    assert run(waits(64.0)) == BACKLOG / 64.0 + BACKLOG / 64.0
    assert run(waits(0.0)) == 0.0


def test_a_server_that_is_down_is_tried_with_one_write_each_time_another_and_has_room_meanwhile() -> None:
    tried: list[tuple[float, int]] = []

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        async def write(item: int) -> None:
            tried.append((clock.monotonic(), item))
            if clock.monotonic() < 20:
                raise DOWN

        for number in range(BACKLOG + 1):
            queue.write(str(number), write, number)
        assert not queue.has_room
        await asyncio.sleep(10)
        assert queue.has_room

    played(fill, workers=8)
    probes = [item for at, item in tried if 0 < at < 20]
    assert len(probes) >= 4 and len(set(probes)) == len(probes)
    assert sorted(item for at, item in tried if at >= 20) == list(range(BACKLOG + 1))


def test_one_write_that_is_never_taken_does_not_keep_others_back() -> None:
    taken: list[int] = []

    async def write(item: int) -> None:
        if item == 0:
            raise ApiError(500, "", "the webhook is down")
        taken.append(item)

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        for number in range(40):
            queue.write(str(number), write, number)

    played(fill)
    assert sorted(taken) == list(range(1, 40))


def test_retry_after_is_obeyed_by_every_write() -> None:
    tried: list[float] = []

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        async def write(item: int) -> None:
            tried.append(clock.monotonic())
            if clock.monotonic() < 1:
                raise ApiError(429, "", "later", 60.0)

        queue.write("a", write, 1)
        await asyncio.sleep(0.5)
        queue.write("b", write, 2)

    played(fill)
    assert tried[0] == 0 and all(at >= 60 for at in tried[1:]) and len(tried) == 3


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 2)), max_size=40), st.integers(0, 2**16))
def test_the_last_write_of_every_key_arrives_whatever_fails_before(steps: list[tuple[int, float]], seed: int) -> None:
    chance = random.Random(seed)
    taken: dict[str, int] = {}

    async def write(item: tuple[str, int]) -> None:
        await asyncio.sleep(chance.random())
        if chance.random() < 0.3:
            raise DOWN
        taken[item[0]] = item[1]

    async def fill(queue: RequestQueue, clock: VirtualClock) -> None:
        for number, (key, pause) in enumerate(steps):
            queue.write(str(key), write, (str(key), number))
            await asyncio.sleep(pause)

    assert played(fill, 3600.0, workers=4).backlog == 0
    assert taken == {str(key): number for number, (key, _) in enumerate(steps)}


def test_what_waits_and_what_is_under_way_is_counted_as_client_go_counts_it() -> None:
    ended: list[tuple[str, float, float]] = []
    tries: list[str] = []

    async def write(item: str) -> None:
        tries.append(item)
        await asyncio.sleep(2)
        if tries == ["a"]:
            raise DOWN

    async def fill(queue: RequestQueue, clock: Any) -> None:
        for counts, _ in queue.depths:
            counts.observe = lambda name, *times: ended.append((name, *(round(one, 6) for one in times)))
        for number in range(3):
            queue.send(lambda: asyncio.sleep(4))
            assert queue.depths[0][1] == number + 1
        queue.write("key", write, "replaced")
        queue.write("key", write, "a")
        await asyncio.sleep(1)
        assert [(len(counts.running), waits) for counts, waits in queue.depths] == [(2, 1), (0, 1)]

    queue = played(fill, name="w", workers=2)
    assert [(counts.name, counts.adds, counts.retries) for counts, _ in queue.depths] == [
        ("w", 3, 0),
        ("background_w", 2, 1),
    ]
    assert [told for told in ended if told[0] == "w"] == [("w", 0, 4), ("w", 0, 4), ("w", 4, 4)]
    (_, first, took), (_, again, _) = (told for told in ended if told[0] != "w")
    assert (first, took) == (4, 2) and again > 0.8
    assert not any(counts.running or waits for counts, waits in queue.depths)
