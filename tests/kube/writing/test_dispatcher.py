"""What is written first, and how late the rest may come, on a server that has room for so much a second."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from policyengine.kube.config.limits import Limits
from policyengine.kube.http.client import TellRefusal
from policyengine.kube.leadership import Alone
from policyengine.kube.watching.informers import Informers
from policyengine.kube.watching.message_queue import Inbox
from policyengine.kube.writing.dispatcher import LONGEST_LULL, MANY, Dispatcher
from policyengine.scheduler.actions import Bind, RecordEvent
from policyengine.scheduler.messages import BindSucceeded, Message
from tests.kube.virtual_time import VirtualClock, run

CYCLES = Limits().cycles


class OneServer:
    """Answers one write after the other, `each` seconds apart, however many are asked for at once."""

    def __init__(self, clock: VirtualClock, each: float, each_event: float = 0.0) -> None:
        self._clock = clock
        self._each = each
        self._each_event = each_event or each
        self._free_at = 0.0
        self.bound: dict[str, float] = {}
        self.behind: dict[str, float] = {}
        """Pod -> how long its event came behind its binding, in seconds."""

    async def _answer(self, seconds: float) -> float:
        self._free_at = max(self._free_at, self._clock.monotonic()) + seconds
        await self._clock.sleep(self._free_at - self._clock.monotonic())
        return self._clock.monotonic()

    async def bind_all(self, binds: Sequence[Bind], tell: TellRefusal) -> None:
        async def bind(at: int, name: str) -> None:
            self.bound[name] = await self._answer(self._each)
            tell(at, None)

        await asyncio.gather(*(bind(at, one.name) for at, one in enumerate(binds)))

    async def create_events(self, events: Sequence[tuple[str, Any]], tell: TellRefusal) -> None:
        async def create(at: int, name: str) -> None:
            self.behind[name] = await self._answer(self._each_event) - self.bound[name]
            tell(at, None)

        await asyncio.gather(*(create(at, event["regarding"]["name"]) for at, (_, event) in enumerate(events)))


class Burst:
    """Pods that wait to be bound, on a dispatcher that is driven as the runner drives it."""

    def __init__(self, pods: int, each: float, each_event: float = 0.0) -> None:
        clock = VirtualClock()
        self.server = OneServer(clock, each, each_event)
        client: Any = self.server
        self.left = pods
        self.lulls: list[float] = []
        self.dispatcher = Dispatcher(
            client,
            clock,
            random.Random(1),
            self._answered,
            informers=Informers(client, clock, random.Random(1), Inbox(10), ()),
            may_bind=lambda uid: True,
            to_decide=lambda: self.left,
            leadership=Alone(),
            limits=Limits(),
            host="test",
            extenders=(),
            observe_extender=lambda extender, verb, result, seconds: None,
        )

    def _answered(self, message: Message) -> None:
        assert isinstance(message, BindSucceeded)
        event = ("1", "Normal", "Scheduled", "Binding", "assigned", "default-scheduler")
        self.dispatcher.dispatch(RecordEvent(message.uid, "default", message.uid, *event))

    async def play(self) -> None:
        """Decide every pod as soon as there is room, and write every event."""
        tasks = [asyncio.ensure_future(work) for work in self.dispatcher.work()]
        for number in self._numbers():
            uid = f"p{number}"
            self.dispatcher.dispatch(Bind(uid, "default", uid, "node", "hash"))
            while number % CYCLES == 0 and not self.dispatcher.has_room:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            if number % CYCLES == 0:
                await asyncio.sleep(0)
                self.lulls.append(self.dispatcher.lull)
        while self.dispatcher.bindings:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await self.dispatcher.flush()
        for task in tasks:
            task.cancel()

    def _numbers(self) -> Iterator[int]:
        total = self.left
        while self.left:
            self.left -= 1
            yield total - self.left


def play(burst_of: int, each: float, each_event: float = 0.0) -> Burst:
    async def whole() -> Burst:
        burst = Burst(burst_of, each, each_event)
        await burst.play()
        return burst

    burst = run(whole())
    assert len(burst.server.bound) == len(burst.server.behind) == burst_of
    return burst


def test_a_short_burst_is_bound_before_its_events_are_written() -> None:
    server = play(3000, 0.001).server
    assert max(server.bound.values()) < 3.2, "three seconds of bindings, and a few events"
    assert max(server.behind.values()) < 4.0


def test_in_a_long_burst_the_events_of_its_end_come_after_it_and_none_five_seconds_behind() -> None:
    server = play(12_000, 0.001).server
    # The bindings of 12 s. The events of those made in the last 4.4 s may come after them; the other 7,600 take 7.6 s.
    # Given way to from the start, these would be 10,000: half of all writes from the fifth second on.
    assert 19.6 < max(server.bound.values()) < 20.6
    assert max(server.behind.values()) < 5.0


@pytest.mark.parametrize("each_event", [0.0005, 0.002, 0.004])
def test_no_event_comes_five_seconds_behind_where_events_take_another_time(each_event: float) -> None:
    assert max(play(8000, 0.001, each_event).server.behind.values()) < 5.0


@pytest.mark.parametrize(("pods", "each", "least", "most"), [(3000, 0.001, 0.004, LONGEST_LULL), (3000, 0.0001, 0, 0)])
def test_answers_of_a_slow_server_may_gather_and_those_of_a_swift_one_not(
    pods: int, each: float, least: float, most: float
) -> None:
    lulls = play(pods, each).lulls
    assert least <= max(lulls) <= most


def test_the_answers_of_few_bindings_are_looked_at_one_by_one() -> None:
    async def whole() -> float:
        burst = Burst(MANY - 1, 0.05)
        await burst.play()
        return max(burst.lulls, default=0.0)

    assert run(whole()) == 0.0
