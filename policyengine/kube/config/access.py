"""Whether the API server lets us in, asked before anything else: what is wrong is said in words for the user."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from policyengine.clock import Clock
from policyengine.cluster.kinds import NODES
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed

PATIENCE = 60.0
"""Seconds for which a server may be starting: kube-apiserver's own start-up probe gives it as many."""
EVERY = 1.0
"""Seconds between two tries."""


class Unreachable(Exception):
    """Nobody answers, or not as an API server does."""


class AccessDenied(Exception):
    """The server answers, and refuses our credentials or our rights."""


async def check_access(client: Client, url: str, source: str) -> None:
    """Return if nodes may be listed. Raises `Unreachable` or `AccessDenied`, in words for the user."""
    try:
        await client.list_page(NODES, limit=1)
    except (ApiError, ConnectionFailed) as error:
        raise _told(error, url, source) from None


async def await_access(client: Client, url: str, source: str, clock: Clock, waits: Callable[[str], None]) -> None:
    """Return once nodes may be listed; meanwhile, for `PATIENCE` at most, `waits` is told why they may not.

    Raises as `check_access`.
    """
    deadline = clock.monotonic() + PATIENCE
    while (refusal := await passing_refusal(client, url, source, clock)) is not None:
        if clock.monotonic() >= deadline:
            raise _told(refusal, url, source)
        waits(f"the API server `{url}` does not let nodes be listed yet: {refusal}")
        await clock.sleep(EVERY)


async def passing_refusal(client: Client, url: str, source: str, clock: Clock) -> ApiError | None:
    """Why nodes may not be listed, where that may pass by itself; None where they may.

    A server that starts answers 503, and 403 as long as it has not read its own roles. One that says it is ready means
    what it says, if it says so again: behind one address there may be several, and a role may be bound a moment after
    we were started. Raises as `check_access`.
    """
    is_believed = False
    while True:
        try:
            await client.list_page(NODES, limit=1)
            return None
        except (ApiError, ConnectionFailed) as error:
            if isinstance(error, ConnectionFailed) or not _may_pass(error) or is_believed:
                raise _told(error, url, source) from None
            is_believed = await _is_meant(client, error)
            if not is_believed:
                return error
        await clock.sleep(EVERY)


def _may_pass(error: ApiError) -> bool:
    """Whether a server that starts, or what stands before it, may say so."""
    return error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS) or error.status >= 500


async def _is_meant(client: Client, error: ApiError) -> bool:
    """Whether a server that refuses the right has started, and so knows its roles. Before that nobody but an
    administrator may ask."""
    if error.status != HTTPStatus.FORBIDDEN:
        return False
    try:
        await client.call("GET", "/readyz")
    except (ApiError, ConnectionFailed):
        return False
    return True


def _told(error: ApiError | ConnectionFailed, url: str, source: str) -> Unreachable | AccessDenied:
    if isinstance(error, ConnectionFailed):
        return Unreachable(
            f"cannot reach the API server `{url}` ({source}): {error}; is it up, and is that its address?"
        )
    if error.status == HTTPStatus.UNAUTHORIZED:
        return AccessDenied(
            f"the API server `{url}` refuses the credentials of {source}: {error.message}; log in again"
        )
    if error.status == HTTPStatus.FORBIDDEN:
        return AccessDenied(
            f"the API server `{url}` refuses to list nodes: {error.message}; "
            "have a role that may list them bound to that account"
        )
    answer = error.message.strip().splitlines()
    said = f": {answer[0][:100]}" if answer else ""
    return Unreachable(f"`{url}` does not answer as an API server{said}; is it the address of one? {source} names it")
