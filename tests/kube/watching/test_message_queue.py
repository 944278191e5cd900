"""How messages wait for the core: in their order, and those who bring many no faster than it takes them."""

import asyncio
from typing import Any

from policyengine.kube.watching.informers import Inbox
from policyengine.scheduler.messages import NodeDeleted
from tests.kube.virtual_time import VirtualClock, run


def names(inbox: Inbox) -> list[str]:
    return [message.name for message in inbox.waiting if isinstance(message, NodeDeleted)]


def test_whoever_brings_too_many_waits_until_enough_of_them_were_taken() -> None:
    async def work() -> None:
        inbox = Inbox(limit=2)
        filling = asyncio.ensure_future(inbox.fill(map(NodeDeleted, "abcd")))
        for left in (3, 2):
            await asyncio.sleep(1)
            assert not filling.done()
            inbox.waiting.popleft()
            inbox.taken()
            assert len(inbox.waiting) == left
        await asyncio.sleep(1)
        assert filling.done()

    run(work())


def test_an_answer_goes_in_behind_the_others_however_many_there_are() -> None:
    async def work() -> None:
        inbox = Inbox(limit=1)
        filling = asyncio.ensure_future(inbox.fill(map(NodeDeleted, "ab")))
        await asyncio.sleep(1)
        inbox.put(NodeDeleted("answer"))
        assert names(inbox) == ["a", "b", "answer"]
        filling.cancel()

    run(work())


def slept(wake: Any, seconds: float | None) -> float:
    """Seconds that a sleep lasts which something may end after three."""

    async def work() -> float:
        inbox = Inbox(limit=1)
        inbox.put(NodeDeleted("before"))
        asyncio.get_running_loop().call_later(3, wake, inbox)
        began = VirtualClock().monotonic()
        await inbox.sleep(seconds)
        return VirtualClock().monotonic() - began

    return run(work())


def test_a_sleep_ends_with_a_message_with_a_call_or_with_its_time() -> None:
    assert slept(lambda inbox: inbox.put(NodeDeleted("a")), None) == 3
    assert slept(Inbox.wake, 5) == 3
    assert slept(Inbox.wake, 2) == 2
