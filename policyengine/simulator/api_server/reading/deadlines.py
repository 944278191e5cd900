"""How long a request may take: the query's `timeout`, a minute where it says none; watches have times of their own.

https://kubernetes.io/docs/reference/using-api/api-concepts/: past its time a request is answered 504, in the filter's
own bare form, and what it set out to do may still happen.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from policyengine.clock import Clock
from policyengine.simulator.api_server.decoding.scalars import parse_duration
from policyengine.simulator.api_server.requests import Request, RequestInfo, Response
from policyengine.simulator.api_server.statuses import bad_request
from policyengine.simulator.api_server.storage.store import encode

REQUEST_SECONDS = 60.0
LATE = {
    "metadata": {},
    "status": "Failure",
    "message": "Timeout: request did not complete within the allotted timeout",
    "reason": "Timeout",
    "details": {},
    "code": 504,
}


def allowed(request: Request, info: RequestInfo) -> float | None:
    """Seconds this request may take, None for a watch; raises the 400 of a time-out that is none."""
    text = request.query.get("timeout", "")
    if info.verb in ("watch", "list") or not text:
        return None if info.verb == "watch" else REQUEST_SECONDS
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from error
    return min(seconds, REQUEST_SECONDS) if seconds > 0 else REQUEST_SECONDS


async def within(clock: Clock, seconds: float, act: Callable[[], Coroutine[Any, Any, Response]]) -> Response:
    """The answer of `act`, or a 504 once `seconds` have passed; `act` then goes on by itself."""
    work = asyncio.ensure_future(act())
    alarm: asyncio.Future[None] = asyncio.ensure_future(_sleep(clock, seconds))
    try:
        both: set[asyncio.Future[Any]] = {work, alarm}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        work.add_done_callback(_ignore)
        return Response(504, {"Content-Type": "text/plain; charset=utf-8"}, encode(LATE))
    except asyncio.CancelledError:
        work.cancel()
        raise
    finally:
        alarm.cancel()


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)


def _ignore(work: "asyncio.Future[Response]") -> None:
    if not work.cancelled():
        work.exception()
