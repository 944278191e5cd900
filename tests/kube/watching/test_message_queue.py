"""How messages wait for the core: in their order, and those who bring many no faster than it takes them."""

import asyncio
from typing import Any

from policyengine.kube.watching.informers import MessageQueue
from policyengine.scheduler.messages import NodeDeleted
from tests.kube.virtual_time import VirtualClock, run


def names(messages: MessageQueue) -> list[str]:
    return [message.name for message in messages.waiting if isinstance(message, NodeDeleted)]


def test_whoever_brings_too_many_waits_until_enough_of_them_were_taken() -> None:
    async def work() -> None:
        messages = MessageQueue(limit=2)
        filling = asyncio.ensure_future(messages.fill(map(NodeDeleted, "abcd")))
        for left in (3, 2):
            await asyncio.sleep(1)
            assert not filling.done()
            messages.waiting.popleft()
            messages.taken()
            assert len(messages.waiting) == left
        await asyncio.sleep(1)
        assert filling.done()

    run(work())


def test_an_answer_goes_in_behind_the_others_however_many_there_are() -> None:
    async def work() -> None:
        messages = MessageQueue(limit=1)
        filling = asyncio.ensure_future(messages.fill(map(NodeDeleted, "ab")))
        await asyncio.sleep(1)
        messages.put(NodeDeleted("answer"))
        assert names(messages) == ["a", "b", "answer"]
        filling.cancel()

    run(work())


def slept(wake: Any, seconds: float | None) -> float:
    """Seconds that a sleep lasts which something may end after three."""

    async def work() -> float:
        messages = MessageQueue(limit=1)
        messages.put(NodeDeleted("before"))
        asyncio.get_running_loop().call_later(3, wake, messages)
        began = VirtualClock().monotonic()
        await messages.sleep(seconds)
        return VirtualClock().monotonic() - began

    return run(work())


def test_a_sleep_ends_with_a_message_with_a_call_or_with_its_time() -> None:
    assert slept(lambda messages: messages.put(NodeDeleted("a")), None) == 3
    assert slept(MessageQueue.wake, 5) == 3
    assert slept(MessageQueue.wake, 2) == 2
