"""What waits to be written: in whose way it stands, for how long, and what failures cost."""

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest

from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.writing.outbox import PATIENCE, Outbox, Together
from policyengine.kube.writing.write_pace import WritePace
from tests.kube.virtual_time import VirtualClock, run
from tests.kube.writing.recorded_writes import running


@pytest.mark.parametrize(
    ("ahead", "earliest"),
    [(lambda now: 0.0, 0.0), (lambda now: 3.0, PATIENCE - 3.0), (lambda now: 3.0 - now, 3.0), (lambda now: 60.0, 0.0)],
    ids=["nothing", "three seconds that never end", "three seconds", "a minute"],
)
def test_an_outbox_gives_way_to_what_is_over_before_it_has_been_patient_for_long(
    ahead: Callable[[float], float], earliest: float
) -> None:
    sent: list[float] = []

    async def work() -> None:
        clock = VirtualClock()

        async def send(item: str) -> None:
            sent.append(clock.monotonic())

        outbox: Outbox[str] = Outbox("thing", send, clock, random.Random(1), ahead=lambda: ahead(clock.monotonic()))
        for number in range(200):
            outbox.put(str(number), str(number))
        await running(outbox.run(), lambda: outbox.flush(10))

    run(work())
    probes, rest = sent[: int(earliest)], sent[int(earliest) :]
    assert len(sent) == 200
    assert probes == pytest.approx([float(second + 1) for second in range(len(probes))], abs=0.1)
    assert earliest <= min(rest) <= max(rest) < earliest + 0.1


@pytest.mark.parametrize("seconds", [0.002, 0.012], ids=["as long as what they give way to", "six times as long"])
def test_who_makes_items_faster_than_they_are_written_waits_before_one_is_late(seconds: float) -> None:
    behind: list[float] = []

    async def work() -> None:
        clock, made = VirtualClock(), dict[str, float]()
        pace = WritePace(clock)

        async def send(item: str) -> None:
            await asyncio.sleep(seconds)
            behind.append(clock.monotonic() - made[item])

        def ahead() -> float:
            return (8000 - len(made)) * pace.seconds

        outbox: Outbox[str] = Outbox("thing", send, clock, random.Random(1), workers=4, pace=pace, ahead=ahead)

        async def make() -> None:
            """A thousand a second, each behind something more urgent that takes the server half a millisecond."""
            while len(made) < 8000:
                count = 10 if outbox.has_room else 0
                pace.began(count)
                await asyncio.sleep(0.01)
                pace.ended(count)
                for _ in range(count):
                    made[name := str(len(made))] = clock.monotonic()
                    outbox.put(name, name)
            assert await outbox.flush(60) == 0

        await running(outbox.run(), make)

    run(work())
    assert len(behind) == 8000
    assert max(behind) < 5.0


def test_items_that_came_one_by_one_do_not_tell_how_long_many_take() -> None:
    async def work() -> bool:
        async def send(items: Sequence[str]) -> list[None]:
            await asyncio.sleep(0.05)
            return [None] * len(items)

        outbox: Outbox[str] = Outbox("thing", Together(send), VirtualClock(), random.Random(1), workers=3)

        async def burst_after_a_trickle() -> None:
            for number in range(60):
                outbox.put(f"early {number}", "x")
                await asyncio.sleep(0.1)
            for number in range(5000):
                outbox.put(str(number), "x")

        await running(outbox.run(), burst_after_a_trickle)
        return outbox.has_room

    assert run(work()), "5,000 of them take 2.6 s"


def test_a_server_that_takes_no_items_holds_nobody_up() -> None:
    async def work() -> bool:
        async def send(item: str) -> None:
            await asyncio.sleep(1000)

        outbox: Outbox[str] = Outbox("thing", send, VirtualClock(), random.Random(1), workers=1)
        outbox.put("a", "a")
        outbox.put("b", "b")
        await running(outbox.run(), lambda: outbox.flush(30))
        return outbox.has_room

    assert run(work())


def test_writes_that_fail_together_are_one_failure_to_wait_for() -> None:
    async def work() -> None:
        clock, written = VirtualClock(), []

        async def send(item: str) -> None:
            await asyncio.sleep(0.01)
            if clock.monotonic() < 1.0:
                raise ConnectionFailed("the server closed the connection", sent=True)
            written.append(clock.monotonic())

        outbox: Outbox[str] = Outbox("thing", send, clock, random.Random(1))
        for number in range(20):
            outbox.put(str(number), "x")
        await running(outbox.run(), lambda: outbox.flush(300))
        assert len(written) == 20
        assert written[-1] < 1 + 2 * 1.6, "a second without a server, and the second pause"

    run(work())


def test_a_server_that_is_down_is_tried_with_one_item_each_time_another() -> None:
    tried: list[tuple[float, tuple[str, ...]]] = []

    async def work() -> None:
        clock = VirtualClock()

        async def send(items: Sequence[str]) -> list[ConnectionFailed | None]:
            tried.append((clock.monotonic(), tuple(items)))
            down = clock.monotonic() < 20
            return [ConnectionFailed("down", sent=True) if down else None for _ in items]

        outbox: Outbox[str] = Outbox("thing", Together(send), clock, random.Random(1))
        for number in range(6):
            outbox.put(str(number), str(number))
        await running(outbox.run(), lambda: outbox.flush(100))

    run(work())
    first, *probes, rest = [items for _, items in tried]
    assert len(first) == 6
    assert len(probes) >= 4 and all(len(items) == 1 for items in probes)
    assert len(set(probes[:4])) == 4
    assert sorted([*probes[-1], *rest]) == sorted(first)


def test_one_item_that_is_never_taken_does_not_keep_others_back() -> None:
    taken: list[str] = []

    async def work() -> None:
        clock = VirtualClock()

        async def send(item: str) -> None:
            if item == "0":
                raise ConnectionFailed("the webhook is down", sent=True)
            taken.append(item)

        outbox: Outbox[str] = Outbox("thing", send, clock, random.Random(1))
        for number in range(40):
            outbox.put(str(number), str(number))
        await running(outbox.run(), lambda: outbox.flush(300))

    run(work())
    assert sorted(taken) == sorted(str(number) for number in range(1, 40))


def test_an_outbox_never_sends_two_of_one_key_together() -> None:
    under_way: list[str] = []
    most = 0

    async def work() -> None:
        async def send(item: str) -> None:
            nonlocal most
            under_way.append(item)
            most = max(most, len(under_way))
            await asyncio.sleep(1)
            under_way.remove(item)

        outbox: Outbox[str] = Outbox("thing", send, VirtualClock(), random.Random(1))

        async def several() -> None:
            for number in range(5):
                outbox.put("key", str(number))
                await asyncio.sleep(0.4)
            await outbox.flush(60)

        await running(outbox.run(), several)

    run(work())
    assert most == 1
