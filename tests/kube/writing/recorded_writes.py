"""What a real kube-scheduler wrote, and a server that takes whatever is written."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.kube.scripted_server import Answer, Asked
from tests.shared_facts import shared

CALLS = json.loads(shared("recorded/scheduler-calls.json").read_text())


def recorded(uri: str, **fields: str) -> dict[str, Any]:
    """The body of the first recorded request to a path whose fields have these values."""
    for call in CALLS:
        body = call.get("request") or {}
        if call["uri"] == uri and all(body.get(key) == value for key, value in fields.items()):
            found: dict[str, Any] = body
            return found
    raise AssertionError(f"nothing recorded of {uri}")


def accept(asked: Asked) -> Answer:
    return Answer(201, {})


async def running(work: Awaitable[None], then: Callable[[], Awaitable[object]]) -> None:
    task = asyncio.ensure_future(work)
    try:
        await then()
    finally:
        task.cancel()
