"""Follows one kind of object: forever > one session > one request, as generators inside each other.

A session is a list and the watches that continue it; it ends where the server no longer knows the version we hold
(410), and the next one finds by comparison what was missed. A request is one watch; when it ends, for whatever reason,
the next one resumes from the last version seen.

What holds here:
1. What is not newer than what was seen is dropped, and what a list no longer has was deleted (`Store`).
2. A line that cannot be read ends the request; nothing of it is applied (`Store`).
3. A kind that is optional and not served (404), in none of its versions, has no objects; the server is asked again
   once the kind is said to be served, or after a while (`Definition`). Where the version that is watched is served no
   more, a list finds another (`Client.served`). Where the caller says so (`on_absent`), it is asked more seldom if it
   refuses the list (403): what is known stays, as nobody said that it is gone.
4. A silent connection ends after `stall_after` seconds; a server sends a bookmark about every minute.
5. Whoever has to know that nothing is missing asks `catch_up`: the kind is listed anew.
6. A server that nobody reached is listed when it is back: it may have been restored from a copy, and have come further
   since than what was seen. Before a watch the server is asked whether it has come as far: it would accept the watch
   and be silent. Where it has gone back (`ServerHistory`), whoever finds that out, the session ends, and the next one
   replaces what is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from http import HTTPStatus
from math import inf
from random import Random
from typing import Any, Generic

from policyengine.clock import Clock
from policyengine.cluster.kinds import Kind, T
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed, Page, TimedOut
from policyengine.kube.http.rate_limit import LONGEST, Backoff
from policyengine.kube.watching.absent_kinds import Definition
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Change, Malformed, Store, WentBack, number

STALL_AFTER = 150.0
WATCH_SECONDS = (300, 600)
"""Between these the server ends a watch, so that clients spread over servers anew; client-go's figures."""
QUICK_WATCH = 1.0
"""A watch that ends sooner without an event counts as a failure: resuming at once would be a hot loop."""
REWIND_AFTER = 60.0
"""Seconds for which only older lists must come before they are believed though the server seems to be ahead of them."""
UNREACHABLE_FOR = 1.5
"""Seconds of the longest delay before it is spread, where nobody listens: a server that is back is to be noticed soon,
and one that is not there is not burdened."""
REFUSED_FOR = 30.0
"""Seconds after which a server that refused an optional kind is asked again: a right that is given is no matter of
seconds."""


class _Expired(Exception):
    """The server no longer has the version we hold: list again."""


class _WentBack(Exception):
    """What is known, and what was asked for by it, belongs to a generation of the server that is over."""


class Reflector(Generic[T]):
    """The changes of one kind, in order, as `batches()` yields them to its one reader, or `changes()` one by one."""

    def __init__(
        self,
        client: Client,
        resource: Kind[T],
        clock: Clock,
        random: Random,
        *,
        history: ServerHistory | None = None,
        namespace: str = "",
        label_selector: str = "",
        on_problem: Callable[[str], None] = lambda message: None,
        on_absent: Callable[[ApiError], None] | None = None,
        stall_after: float = STALL_AFTER,
    ) -> None:
        """`history`: of the server, shared by all that read it; else it is one's own. `on_absent` is told, once each
        time, why an optional kind has no list; a refusal is no problem then."""
        self.synced = asyncio.Event()
        """Set once the first list was yielded to its end."""
        self.resource = resource
        self.store = Store(resource, on_problem)
        """What is known by now."""
        self.failing_since: float | None = None
        """Since when neither list nor watch succeeded, on the monotonic clock; None where the last one did."""
        self.generation = -1
        self._client = client
        self._clock = clock
        self._random = random
        self._history = history or ServerHistory(client, clock)
        self._history.followers.append(self)
        self._history.listeners.append(self._wake)
        self.store.generation = self._history.generation
        self._scope = (namespace, label_selector)
        self._on_problem = on_problem
        self._on_absent = on_absent
        self._definition = Definition(client, resource, clock, random)
        self._absent = 0
        """The HTTP status of the last list, where there was none for a reason that is no problem."""
        self._stall_after = stall_after
        self._backoff = Backoff(clock, random)
        self._relists = Backoff(clock, random, first=0.1)
        """A list is the dearest request there is: a server that forgets fast is not listed in a hot loop."""
        self._said, self._said_at = ("", 0.0), 0.0
        """The problem told last, with the beginning of the failures where it is a refusal (403), and when: of a server
        that nobody reaches it is not told each time, of a refusal once, until it is another one."""
        self._fresh_at = clock.monotonic()
        self._waiting: list[asyncio.Event] = []
        """Of those who wait for a list that begins from now on."""
        self._asked: asyncio.Future[None] | None = None
        """Done when somebody begins to wait, while that is listened for."""

    async def catch_up(self) -> None:
        """Return once every change that the server knows of by now was yielded.

        The kind is listed anew, consistently: of a watch nobody knows how far behind it is.
        """
        listed = asyncio.Event()
        self._waiting.append(listed)
        self._wake()
        await listed.wait()

    def _wake(self) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)

    async def changes(self) -> AsyncGenerator[Change[T], None]:
        """Forever: one change after the other."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for change in batch:
                    yield change

    async def batches(self) -> AsyncGenerator[list[Change[T]], None]:
        """Forever: one session after the other. Changes that arrived together come together; no batch is empty."""
        while True:
            waiting = list(self._waiting)
            try:
                async with aclosing(self._session(waiting)) as session:
                    async for batch in session:
                        yield batch
            except _Expired as error:
                self._on_problem(f"the watch of {self.resource.plural} starts over: {error}")
                await self._rest(self._relists.delay())
            except (WentBack, _WentBack) as error:
                if isinstance(error, WentBack):
                    self._history.went_back(str(error), self.store.generation)
                await self._rest(self._relists.delay())
            except (ApiError, ConnectionFailed, Malformed) as error:
                if self._is_absent(error):
                    assert isinstance(error, ApiError)
                    self.store.version = ""
                    keys = self.store.keys() if error.status == HTTPStatus.NOT_FOUND else ()
                    gone: list[Change[T]] = list(self.store.forget_keys(keys, 0))
                    if gone:
                        yield gone
                    if self._on_absent is not None and self._absent != error.status:
                        self._on_absent(error)
                    self._absent = error.status
                    self._note_listed(waiting)
                    if not self._waiting:
                        await self._rest_while_absent(error.status)
                else:
                    await self._pause(error, "list")

    async def _rest_while_absent(self, status: int) -> None:
        """Wait until the kind is to be asked for again. After a silence that is as long as a broken watch may be, it
        is in any case."""
        if status != HTTPStatus.NOT_FOUND:
            await self._rest(REFUSED_FOR)
            return
        coming = asyncio.ensure_future(self._definition.comes())
        try:
            await self._listens(self._stall_after, coming)
            if coming.done():
                coming.result()
        finally:
            coming.cancel()
            await asyncio.wait({coming})

    def _is_absent(self, error: Exception) -> bool:
        """Whether the server does not serve the kind, and need not."""
        statuses = (HTTPStatus.NOT_FOUND,) if self._on_absent is None else (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN)
        return self.resource.is_optional and isinstance(error, ApiError) and error.status in statuses

    def _begins_anew(self, error: ApiError) -> bool:
        """Whether a watch that ends so cannot go on from the version we hold. Where that is no number, which a server
        refuses with 500, it may never have been a version."""
        return error.status == HTTPStatus.GONE or not number(self.store.version)

    def _note_listed(self, waiting: list[asyncio.Event]) -> None:
        """A list was yielded to its end that began when these waited."""
        self.synced.set()
        self.generation, self.store.anew = self.store.generation, False
        self._history.listed()
        for listed in waiting:
            self._waiting.remove(listed)
            listed.set()

    async def _session(self, waiting: list[asyncio.Event]) -> AsyncGenerator[list[Change[T]], None]:
        """One list, then watches for as long as the server can continue from what was seen, and nobody waits for a
        list."""
        before = -inf  # the list has shown where the server is; which cluster that is may have been asked by another
        async with aclosing(self._list()) as listed:
            async for batch in listed:
                yield batch
        self._note_listed(waiting)
        while not self._waiting:
            self._end_with_generation()
            version = self.store.version
            try:
                await self._ask_whether_it_came_as_far(before)
                started = self._clock.monotonic()
                async with aclosing(self._request()) as request:
                    async for batch in request:
                        yield batch
                self._end_with_generation()
                before = self._clock.monotonic()
                if before - started < QUICK_WATCH and self.store.version == version:
                    await self._rest(self._backoff.delay())
            except (ApiError, ConnectionFailed, Malformed) as error:
                before = self._clock.monotonic()
                if isinstance(error, ApiError) and self._begins_anew(error):
                    raise _Expired(error.message) from error
                if self._is_absent(error):
                    if self.resource.older:
                        raise _Expired("its version of the API is served no more") from error
                    raise
                if isinstance(error, ConnectionFailed) and error.is_away:
                    await self._pause(error, "watch")
                    raise _Expired("the server was away") from error
                if self.store.version != version:
                    self._backoff.reset()  # it worked: whoever cuts connections now and then does not slow us down
                await self._pause(error, "watch")

    async def _list(self) -> AsyncGenerator[list[Change[T]], None]:
        """Every page, compared with what is known; what no page had is deleted."""
        if self.store.generation != self._history.generation:
            self.store.believe_anything(self._history.generation)
        missing, version, continue_ = self.store.keys(), "", ""
        while True:
            page = await self._page(continue_)
            if not version:
                version = page.metadata.resource_version
                await self._refuse_older(version)
            self._end_with_generation()
            listed = self.store.apply_page(page.items or (), missing, number(version))
            if listed:
                yield listed
            continue_ = page.metadata.continue_
            if not continue_:
                break
        gone: list[Change[T]] = list(self.store.forget_keys(missing, number(version)))
        if gone:
            yield gone
        self.store.version = version
        self._fresh_at = self._clock.monotonic()
        self._backoff.reset()

    async def _page(self, continue_: str) -> Page:
        """One page; a list whose continuation expired starts over."""
        try:
            page = await self._client.list_page(self.resource, *self._scope, continue_=continue_)
        except ApiError as error:
            self._end_with_generation()
            if error.status == 410 and continue_:
                raise _Expired("the list took longer than the server keeps its versions") from error
            raise
        self.failing_since, self._absent = None, 0
        self.store.read_as(self._client.served(self.resource).type)
        return page

    def _end_with_generation(self) -> None:
        """Raise `_WentBack` where that is due."""
        if self.store.generation != self._history.generation:
            raise _WentBack

    async def _refuse_older(self, version: str) -> None:
        """A list older than what was seen comes from a server that has gone back, if all it says is older; else from
        one that lags, unless nothing newer comes for long."""
        seen = self.store.version
        if not 0 < number(version) < number(seen):
            return
        why = f"the list of {self.resource.plural} has version {version}, and {seen} was seen"
        reached = await self._history.look(self._clock.monotonic())
        if 0 < reached < number(seen) or self._clock.monotonic() - self._fresh_at >= REWIND_AFTER:
            raise WentBack(why)
        raise ApiError(504, "Timeout", f"{why}: it lags behind")

    async def _ask_whether_it_came_as_far(self, since: float) -> None:
        """Return if the server has what was seen; `since`: when the last watch ended. Raises `WentBack`."""
        seen = self._history.count(self.store.version)
        reached = await self._history.look(since)
        self._end_with_generation()
        if 0 < reached < seen:
            page = await self._client.list_page(self.resource, *self._scope, limit=1)
            await self._refuse_older(page.metadata.resource_version)

    async def _request(self) -> AsyncGenerator[list[Change[T]], None]:
        """One watch, resumed from the last version seen, and the lists that somebody asks for meanwhile."""
        seconds = self._random.randint(*WATCH_SECONDS)
        self.store.since = number(self.store.version)
        opening = asyncio.ensure_future(self._client.watch(self.resource, self.store.version, seconds, *self._scope))
        async with aclosing(self._lists_until(opening)) as lists:
            async for batch in lists:
                yield batch
        response = opening.result()
        self.failing_since = None
        try:
            arrivals = aiter(response.lines())
            while True:
                arrival = asyncio.ensure_future(anext(arrivals, None))
                async with aclosing(self._lists_until(arrival)) as lists:
                    async for batch in lists:
                        yield batch
                lines = arrival.result()
                self._end_with_generation()
                if lines is None:
                    return
                version = self.store.version
                changes, failure = self.store.apply_lines(lines)
                if self.store.version != version:
                    self._fresh_at = self._clock.monotonic()
                if changes:
                    yield changes
                if failure is not None:
                    raise failure
        finally:
            await response.close()

    async def _lists_until(self, arrival: asyncio.Future[Any]) -> AsyncGenerator[list[Change[T]], None]:
        """Wait for what the watch brings, and list whenever somebody asks meanwhile: the watch stays open.

        Raises `ConnectionFailed` after a long silence. The reader's own work does not count as silence.
        """
        try:
            while not arrival.done():
                self._end_with_generation()
                is_asked = bool(self._waiting) or await self._listens(self._stall_after, arrival)
                self._end_with_generation()
                if not is_asked and not arrival.done():
                    raise TimedOut(f"silent for {self._stall_after:g} s", sent=True)
                waiting = list(self._waiting)
                if waiting:
                    async with aclosing(self._list()) as listed:
                        async for batch in listed:
                            yield batch
                    self._note_listed(waiting)
        finally:
            if not arrival.done():
                arrival.cancel()
                await asyncio.wait({arrival})

    async def _listens(self, seconds: float, *until: asyncio.Future[Any]) -> bool:
        """Wait for any of these, or until somebody begins to wait for a list; whether that happened."""
        self._asked = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._asked, *until}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return self._asked.done()

    async def _pause(self, error: ApiError | ConnectionFailed | Malformed, doing: str) -> None:
        is_unreachable = isinstance(error, ConnectionFailed) and error.is_away
        retry_after = error.retry_after if isinstance(error, ApiError) else 0.0
        wait = self._backoff.delay(retry_after, at_most=UNREACHABLE_FOR if is_unreachable else LONGEST)
        now, problem = self._clock.monotonic(), f"cannot {doing} {self.resource.plural}: {error}"
        if self.failing_since is None:
            self.failing_since = now
        is_refused = isinstance(error, ApiError) and error.status == HTTPStatus.FORBIDDEN
        about = problem, self.failing_since if is_refused else 0.0
        if about != self._said or now >= self._said_at + (inf if is_refused else LONGEST if is_unreachable else 0.0):
            self._said, self._said_at = about, now
            when = "until it is allowed" if is_refused else f"in {wait:.1f} s"
            self._on_problem(f"{problem}; trying again {when}")
        await self._rest(wait)

    async def _rest(self, seconds: float) -> None:
        """Wait, but not on where somebody asks for a list from then on: the server has answered whoever asks."""
        await self._listens(seconds)
