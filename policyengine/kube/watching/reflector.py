"""Follows one kind of object: forever > one session > one request, as generators inside each other.

A session is a list and the watches that continue it; it ends where the server no longer knows the version we hold
(410), and the next one finds by comparison what was missed. A request is one watch; when it ends, for whatever
reason, the next one resumes from the last version seen.

What holds here:
1. What is not newer than what was seen is dropped, and what a list no longer has was deleted (`Store`).
2. A line that cannot be read ends the request; nothing of it is applied (`WatchReader`).
3. A kind that is optional and not served (404) has no objects; the server is asked again after a while.
4. A silent connection ends after `stall_after` seconds; a server sends a bookmark about every minute.
5. Whoever has to know that nothing is missing asks `catch_up`, which waits for what the server has by then (`Goal`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from random import Random
from typing import Any, Generic

from policyengine.clock import Clock
from policyengine.cluster.kinds import Kind, T
from policyengine.kube.http.client import PAGE_SIZE, ApiError, Client, ConnectionFailed, Page, Response
from policyengine.kube.http.rate_limit import Backoff
from policyengine.kube.watching.store import Change, Malformed, Store, WatchReader, number

STALL_AFTER = 150.0
WATCH_SECONDS = (300, 600)
"""Between these the server ends a watch, so that clients spread over servers anew; client-go's figures."""
QUICK_WATCH = 1.0
"""A watch that ends sooner without an event counts as a failure: resuming at once would be a hot loop."""
REWIND_AFTER = 60.0
"""Seconds for which only older lists must come before one is believed: the server was restored from a backup."""
ABSENT_FOR = 30.0
"""Seconds after which a server that did not serve an optional kind is asked again."""


class _Expired(Exception):
    """The server no longer has the version we hold: list again."""


class Reflector(Generic[T]):
    """The changes of one kind, in order, as `batches()` yields them to its one reader, or `changes()` one by one."""

    def __init__(
        self,
        client: Client,
        resource: Kind[T],
        clock: Clock,
        random: Random,
        *,
        namespace: str = "",
        label_selector: str = "",
        on_problem: Callable[[str], None] = lambda message: None,
        stall_after: float = STALL_AFTER,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once the first list was yielded to its end."""
        self.resource = resource
        self._client = client
        self._clock = clock
        self._random = random
        self._scope = (namespace, label_selector)
        self._on_problem = on_problem
        self._stall_after = stall_after
        self._backoff = Backoff(clock, random)
        self._relists = Backoff(clock, random, first=0.1)
        """A list is the dearest request there is: a server that forgets fast is not listed in a hot loop."""
        self._known = Store[T]()
        self._reader = WatchReader(resource, self._known, on_problem)
        self._goal = Goal(self._reader)
        self._fresh_at = clock.monotonic()
        self.few = FEW
        """So many known objects at most are listed by `catch_up` at once."""
        self.failing_since: float | None = None
        """Since when neither list nor watch succeeded, on the monotonic clock; None where the last one did."""

    def keep_texts(self) -> None:
        """Keep every object as the server sent it, too, for `text`; before the first list."""
        self._known.keep_texts()

    def text(self, name: str, namespace: str = "") -> bytes | None:
        """An object as the server sent it last; None where it does not exist, or texts are not kept."""
        return self._known.text(namespace, name)

    @property
    def version(self) -> int:
        """The newest resourceVersion seen."""
        return self._reader.number

    def knows(self, namespace: str, name: str, uid: str) -> bool:
        """Whether the object exists as far as the events seen tell."""
        return self._known.uid(namespace, name) == uid

    async def catch_up(self) -> None:
        """Return once every change that the server knows of by now was yielded.

        The server's version comes with a consistent list of one object. A kind of few objects is listed then. Of others
        the watch, which tells by its events and bookmarks only how far it is, is opened anew, to have a bookmark soon;
        where none comes the kind is listed.
        """
        await self._goal.reach(await self._newest())

    async def _newest(self) -> int:
        """The version that the server has now; 0 for a kind that it does not serve."""
        backoff = Backoff(self._clock, self._random)
        while True:
            try:
                return number((await self._page(limit=1)).metadata.resource_version)
            except (ApiError, ConnectionFailed) as error:
                if isinstance(error, ApiError) and self._is_absent(error):
                    return 0
                wait = backoff.delay(error.retry_after if isinstance(error, ApiError) else 0.0)
                self._on_problem(f"cannot ask how far {self.resource.plural} are: {error}; again in {wait:.1f} s")
                await self._clock.sleep(wait)

    async def changes(self) -> AsyncGenerator[Change[T], None]:
        """Forever: one change after the other."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for change in batch:
                    yield change

    async def batches(self) -> AsyncGenerator[list[Change[T]], None]:
        """Forever: one session after the other. Changes that arrived together come together; no batch is empty."""
        while True:
            try:
                async with aclosing(self._session()) as session:
                    async for batch in session:
                        yield batch
            except _Expired as error:
                self._on_problem(f"the watch of {self.resource.plural} starts over: {error}")
                await self._goal.rest(self._relists.delay())
            except (ApiError, ConnectionFailed, Malformed) as error:
                if isinstance(error, ApiError) and self._is_absent(error):
                    if self._known:
                        yield self._all_gone()
                    self.synced.set()
                    await self._clock.sleep(ABSENT_FOR)
                else:
                    await self._pause(error, "list")

    def _is_absent(self, error: ApiError) -> bool:
        """Whether the server does not serve the kind, and need not."""
        return self.resource.is_optional and error.status == 404

    def _all_gone(self) -> list[Change[T]]:
        """What was known of a kind that the server does not serve, or not any more."""
        self._reader.reach("")
        return list(self._known.forget_keys(self._known.keys(), 0))

    async def _session(self) -> AsyncGenerator[list[Change[T]], None]:
        """One list, then watches for as long as the server can continue from what was seen, and nobody needs a list."""
        async with aclosing(self._list()) as listed:
            async for batch in listed:
                yield batch
        self.synced.set()
        while True:
            started, version, hurries = self._clock.monotonic(), self._reader.version, self._goal.is_ahead
            if hurries and len(self._known) <= self.few:
                return
            try:
                async with aclosing(self._request(hurries)) as request:
                    async for batch in request:
                        yield batch
                if hurries and self._goal.is_ahead:
                    raise _Expired(f"no bookmark of resourceVersion {self._goal.version} comes")
                quick = self._clock.monotonic() - started < QUICK_WATCH and self._reader.version == version
                if quick and not self._goal.is_ahead:
                    await self._goal.rest(self._backoff.delay())
            except (ApiError, ConnectionFailed, Malformed) as error:
                if isinstance(error, ApiError) and error.status == 410:
                    raise _Expired(error.message) from error
                if isinstance(error, ApiError) and self._is_absent(error):
                    raise
                if hurries:
                    raise _Expired(str(error)) from error
                if self._reader.version != version:
                    self._backoff.reset()  # it worked: whoever cuts connections now and then does not slow us down
                await self._pause(error, "watch")

    async def _list(self) -> AsyncGenerator[list[Change[T]], None]:
        """Every page, compared with what is known; what no page had is deleted."""
        missing, versions, continue_ = self._known.keys(), "", ""
        while True:
            page = await self._page(continue_)
            if not versions:
                versions = page.metadata.resource_version
                self._refuse_older(versions)
            listed = self._reader.apply_page(page.items or (), missing)
            if listed:
                yield listed
            continue_ = page.metadata.continue_
            if not continue_:
                break
        gone: list[Change[T]] = list(self._known.forget_keys(missing, number(versions)))
        if gone:
            yield gone
        self._reader.reach(versions)
        self._fresh_at = self._clock.monotonic()
        self._backoff.reset()
        self._goal.note()

    async def _page(self, continue_: str = "", limit: int = PAGE_SIZE) -> Page:
        """One page; a list whose continuation expired starts over."""
        try:
            page = await self._client.list_page(self.resource, *self._scope, continue_=continue_, limit=limit)
        except ApiError as error:
            if error.status == 410 and continue_:
                raise _Expired("the list took longer than the server keeps its versions") from error
            raise
        self.failing_since = None
        return page

    def _refuse_older(self, version: str) -> None:
        """A list older than what was seen comes from a lagging server, unless nothing newer comes for long."""
        seen = self._reader.version
        if number(version) >= self.version:
            return
        if self._clock.monotonic() - self._fresh_at < REWIND_AFTER:
            raise ApiError(504, "Timeout", f"resourceVersion {version} is older than {seen}, seen before")
        self._known.believe_anything()
        self._reader.reach("")

    async def _request(self, hurries: bool) -> AsyncGenerator[list[Change[T]], None]:
        """One watch, resumed from the last version seen; one that hurries tells soon how far it is."""
        response = await self._open(hurries)
        try:
            async with aclosing(self._arrivals(response, hurries)) as arrivals:
                async for lines in arrivals:
                    version = self._reader.version
                    changes, failure = self._reader.apply_lines(lines)
                    if self._reader.version != version:
                        self._fresh_at = self._clock.monotonic()
                        self._goal.note()
                    if changes:
                        yield changes
                    if failure is not None:
                        raise failure
        finally:
            await response.close()

    async def _open(self, hurries: bool) -> Response:
        """Start a watch; headers come at once, so their absence is a stall as well."""
        namespace, label_selector = self._scope
        seconds = CATCH_UP_WATCH if hurries else self._random.randint(*WATCH_SECONDS)
        patience = self._patience(hurries)
        try:
            async with asyncio.timeout(patience):
                response = await self._client.watch(
                    self.resource, self._reader.version, seconds, namespace, label_selector
                )
        except TimeoutError:
            raise ConnectionFailed(f"no answer for {patience:g} s", sent=True) from None
        self.failing_since = None
        return response

    async def _arrivals(self, response: Response, hurries: bool) -> AsyncGenerator[list[bytes], None]:
        """The lines of a response as they arrive, until it ends or falls silent, or is to be replaced by one that
        hurries."""
        arrivals, patience = aiter(response.lines()), self._patience(hurries)
        while hurries or not self._goal.is_ahead:
            try:
                # The time-out covers this one await and never a yield: it would cancel the reader's own work.
                async with asyncio.timeout(patience) as silence:
                    self._goal.silence = None if hurries else silence
                    lines = await anext(arrivals, None)
            except TimeoutError:
                if self._goal.is_ahead and not hurries:
                    return
                raise ConnectionFailed(f"silent for {patience:g} s", sent=True) from None
            finally:
                self._goal.silence = None
            if lines is None:
                return
            yield lines

    def _patience(self, hurries: bool) -> float:
        """Seconds of silence that are borne."""
        return min(CATCH_UP, self._stall_after) if hurries else self._stall_after

    async def _pause(self, error: ApiError | ConnectionFailed | Malformed, doing: str) -> None:
        wait = self._backoff.delay(error.retry_after if isinstance(error, ApiError) else 0.0)
        if self.failing_since is None:
            self.failing_since = self._clock.monotonic()
        self._on_problem(f"cannot {doing} {self.resource.plural}: {error}; trying again in {wait:.1f} s")
        await self._goal.rest(wait)


CATCH_UP_WATCH = 3
"""Seconds of a watch that is to tell soon how far it is: the server sends a bookmark two seconds before the end
(`nextBookmarkTime`, apiserver's cache_watcher.go, v1.36)."""
CATCH_UP = 5.0
"""Seconds of silence after which such a watch is given up, and the kind is listed."""

FEW = 2_000
"""As many objects are listed sooner than a bookmark comes."""


class Goal:
    """The version up to which a kind is to be known, where somebody waits for one."""

    def __init__(self, reader: WatchReader[Any]) -> None:
        self.version = 0
        """0 where nobody waits."""
        self.silence: asyncio.Timeout | None = None
        """Runs out when the watch that is read counts as silent; None where that hurries, or none is read."""
        self._reader = reader
        self._set, self._reached = asyncio.Event(), asyncio.Event()

    @property
    def is_ahead(self) -> bool:
        """Whether somebody waits for what is not known yet."""
        return self._reader.number < self.version

    async def reach(self, version: int) -> None:
        """Return once `note` finds that the version was reached."""
        self.version = max(self.version, version)
        if self.is_ahead:
            self._reached.clear()
            self._set.set()
            if self.silence is not None:
                self.silence.reschedule(asyncio.get_running_loop().time())
            await self._reached.wait()

    def note(self) -> None:
        """The reader came further, and all it read was yielded."""
        if self.version and not self.is_ahead:
            self.version = 0
            self._reached.set()

    async def rest(self, seconds: float) -> None:
        """Wait, but not on where a goal is set from then on: the server has answered whoever set it."""
        self._set.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._set.wait()
