"""Follows one kind of object: forever > one session > one request, as generators inside each other.

A session is a list and the watches that continue it; it ends where the server no longer knows the version we hold
(410), and the next one finds by comparison what was missed. A request is one watch; when it ends, for whatever
reason, the next one resumes from the last version seen.

What holds here:
1. What is not newer than what was seen is dropped, and what a list no longer has was deleted (`KnownObjects`).
2. A line is applied whole or not at all: one that cannot be read ends the request.
3. A kind that is optional and not served (404) has no objects; the server is asked again after a while.
4. A silent connection ends after `stall_after` seconds; a server sends a bookmark about every minute.
5. Whoever has to know that nothing is missing asks `catch_up`, which waits for what the server has by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from random import Random
from typing import Generic, Protocol, cast

import msgspec

from policyengine.clock import Clock
from policyengine.cluster import objects
from policyengine.kube.backoff import Backoff
from policyengine.kube.client import PAGE_SIZE, ApiError, Client, Page, error_of
from policyengine.kube.known_objects import Change, KnownObjects, key_of, number
from policyengine.kube.resources import Resource, T
from policyengine.kube.transport import ConnectionFailed, Response

STALL_AFTER = 150.0
WATCH_SECONDS = (300, 600)
"""Between these the server ends a watch, so that clients spread over servers anew; client-go's figures."""
QUICK_WATCH = 1.0
"""A watch that ends sooner without an event counts as a failure: resuming at once would be a hot loop."""
REWIND_AFTER = 60.0
"""Seconds for which only older lists must come before one is believed: the server was restored from a backup."""

CATCH_UP_WATCH = 3
"""Seconds of a watch that is to tell soon how far it is: the server sends a bookmark two seconds before the end
(`nextBookmarkTime`, apiserver's cache_watcher.go, v1.36)."""
CATCH_UP = 5.0
"""Seconds of silence after which such a watch is given up, and the kind is listed."""

FEW = 2_000
"""As many objects are listed sooner than a bookmark comes."""

ABSENT_FOR = 30.0
"""Seconds after which a server that did not serve an optional kind is asked again."""


class WatchEvent(msgspec.Struct):
    """One line of a watch; the object is decoded once its type is known."""

    type: str
    object: msgspec.Raw


class _Told(msgspec.Struct, Generic[T]):
    """Nearly every line of a watch, decoded at once: an object that can be read."""

    type: str
    object: T


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identity(msgspec.Struct):
    """What every object has."""

    metadata: _Meta


class _HasMetadata(Protocol):
    """Every kind that is followed."""

    @property
    def metadata(self) -> objects.ObjectMeta: ...


_decode_event = msgspec.json.Decoder(WatchEvent).decode
_decode_identity = msgspec.json.Decoder(_Identity).decode


class _Expired(Exception):
    """The server no longer has the version we hold: list again."""


class _Malformed(Exception):
    """A line is not a watch event."""


class Reflector(Generic[T]):
    """The changes of one kind, in order, as `batches()` yields them to its one reader, or `changes()` one by one."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
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
        self._known = KnownObjects[T]()
        self._decode_told: Callable[[bytes], _Told[T]] = msgspec.json.Decoder(_Told[resource.type]).decode  # type: ignore[name-defined]
        self._version = ""
        self._number = 0
        """The version as a number."""
        self._fresh_at = clock.monotonic()
        self._goal = 0
        """The version that somebody waits for; 0 for nobody."""
        self._hurry, self._caught_up = asyncio.Event(), asyncio.Event()
        self._silence: asyncio.Timeout | None = None
        """Runs out when the watch that is read counts as silent; None where that hurries, or none is read."""
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
        return self._number

    def _set_version(self, version: str) -> None:
        self._version, self._number = version, number(version)

    def knows(self, namespace: str, name: str, uid: str) -> bool:
        """Whether the object exists as far as the events seen tell."""
        return self._known.uid(namespace, name) == uid

    async def catch_up(self) -> None:
        """Return once every change that the server knows of by now was yielded.

        The server's version comes with a consistent list of one object. A kind of few objects is listed then. Of others
        the watch, which tells by its events and bookmarks only how far it is, is opened anew, to have a bookmark soon;
        where none comes the kind is listed.
        """
        self._goal = max(self._goal, await self._newest())
        if self._is_behind:
            self._caught_up.clear()
            self._hurry.set()
            if self._silence is not None:
                self._silence.reschedule(asyncio.get_running_loop().time())
            await self._caught_up.wait()

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

    @property
    def _is_behind(self) -> bool:
        return self.version < self._goal

    def _note_version(self) -> None:
        if self._goal and not self._is_behind:
            self._goal = 0
            self._caught_up.set()

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
                await self._rest(self._relists.delay())
            except (ApiError, ConnectionFailed, _Malformed) as error:
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
        self._set_version("")
        return list(self._known.forget_keys(self._known.keys(), 0))

    async def _session(self) -> AsyncGenerator[list[Change[T]], None]:
        """One list, then watches for as long as the server can continue from what was seen, and nobody needs a list."""
        async with aclosing(self._list()) as listed:
            async for batch in listed:
                yield batch
        self.synced.set()
        while True:
            started, version, hurries = self._clock.monotonic(), self._version, self._is_behind
            if hurries and len(self._known) <= self.few:
                return
            try:
                async with aclosing(self._request(hurries)) as request:
                    async for batch in request:
                        yield batch
                if hurries and self._is_behind:
                    raise _Expired(f"no bookmark of resourceVersion {self._goal} comes")
                quick = self._clock.monotonic() - started < QUICK_WATCH and self._version == version
                if quick and not self._is_behind:
                    await self._rest(self._backoff.delay())
            except (ApiError, ConnectionFailed, _Malformed) as error:
                if isinstance(error, ApiError) and error.status == 410:
                    raise _Expired(error.message) from error
                if isinstance(error, ApiError) and self._is_absent(error):
                    raise
                if hurries:
                    raise _Expired(str(error)) from error
                if self._version != version:
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
            listed: list[Change[T]] = []
            for raw in page.items or ():
                meta, decoded = self._decode(raw)
                missing.discard(key_of(meta.namespace, meta.name))
                change = self._known.observe(meta, decoded, raw)
                if change is not None:
                    listed.append(change)
            if listed:
                yield listed
            continue_ = page.metadata.continue_
            if not continue_:
                break
        gone: list[Change[T]] = list(self._known.forget_keys(missing, number(versions)))
        if gone:
            yield gone
        self._set_version(versions)
        self._fresh_at = self._clock.monotonic()
        self._backoff.reset()
        self._note_version()

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
        if number(version) >= self.version:
            return
        if self._clock.monotonic() - self._fresh_at < REWIND_AFTER:
            raise ApiError(504, "Timeout", f"resourceVersion {version} is older than {self._version}, seen before")
        self._known.believe_anything()
        self._set_version("")

    async def _request(self, hurries: bool) -> AsyncGenerator[list[Change[T]], None]:
        """One watch, resumed from the last version seen; one that hurries tells soon how far it is."""
        response = await self._open(hurries)
        try:
            async with aclosing(self._arrivals(response, hurries)) as arrivals:
                async for lines in arrivals:
                    changes, failure = self._apply_all(lines)
                    if changes:
                        yield changes
                    if failure is not None:
                        raise failure
        finally:
            await response.close()

    def _apply_all(self, lines: list[bytes]) -> tuple[list[Change[T]], ApiError | _Malformed | None]:
        """What the lines change, up to the first that cannot be applied, and why that cannot."""
        changes: list[Change[T]] = []
        version = self._version
        try:
            for line in lines:
                change = self._apply(line)
                if change is not None:
                    changes.append(change)
        except (ApiError, _Malformed) as error:
            return changes, error
        finally:
            if self._version != version:
                self._fresh_at = self._clock.monotonic()
                self._note_version()
        return changes, None

    async def _open(self, hurries: bool) -> Response:
        """Start a watch; headers come at once, so their absence is a stall as well."""
        namespace, label_selector = self._scope
        seconds = CATCH_UP_WATCH if hurries else self._random.randint(*WATCH_SECONDS)
        patience = self._patience(hurries)
        try:
            async with asyncio.timeout(patience):
                response = await self._client.watch(self.resource, self._version, seconds, namespace, label_selector)
        except TimeoutError:
            raise ConnectionFailed(f"no answer for {patience:g} s", sent=True) from None
        self.failing_since = None
        return response

    async def _arrivals(self, response: Response, hurries: bool) -> AsyncGenerator[list[bytes], None]:
        """The lines of a response as they arrive, until it ends or falls silent, or is to be replaced by one that
        hurries."""
        arrivals, patience = aiter(response.arrivals()), self._patience(hurries)
        while hurries or not self._is_behind:
            try:
                # The time-out covers this one await and never a yield: it would cancel the reader's own work.
                async with asyncio.timeout(patience) as silence:
                    self._silence = None if hurries else silence
                    lines = await anext(arrivals, None)
            except TimeoutError:
                if self._is_behind and not hurries:
                    return
                raise ConnectionFailed(f"silent for {patience:g} s", sent=True) from None
            finally:
                self._silence = None
            if lines is None:
                return
            yield lines

    def _patience(self, hurries: bool) -> float:
        """Seconds of silence that are borne."""
        return min(CATCH_UP, self._stall_after) if hurries else self._stall_after

    def _apply(self, line: bytes) -> Change[T] | None:
        """What one line changes; None for bookmarks and for what is not news."""
        if not self._known.keeps_texts:
            try:
                told = self._decode_told(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass  # What it is, and what is wrong with it, is found out below.
            else:
                if told.type in ("ADDED", "MODIFIED"):
                    meta = cast(_HasMetadata, told.object).metadata
                    self._advance(meta.resource_version)
                    return self._known.observe(meta, told.object)
        return self._apply_in_parts(line)

    def _apply_in_parts(self, line: bytes) -> Change[T] | None:
        """As `_apply`, the object decoded for itself: any line, and objects whose text is kept."""
        if not line.strip():
            return None
        try:
            event = _decode_event(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _Malformed(f"a line is no watch event ({error})") from error
        if event.type == "ERROR":
            raise error_of(500, bytes(event.object))
        if event.type in ("ADDED", "MODIFIED"):
            meta, decoded = self._decode(event.object)
            self._advance(meta.resource_version)
            return self._known.observe(meta, decoded, event.object)
        if event.type not in ("DELETED", "BOOKMARK"):
            raise _Malformed(f"a watch event of type `{event.type}`")
        identity = _identity(event.object)
        self._advance(identity.resource_version)
        return self._known.forget(identity) if event.type == "DELETED" else None

    def _decode(self, raw: msgspec.Raw) -> tuple[_Meta | objects.ObjectMeta, T | None]:
        """An object; one that cannot be read is reported and left as it was known."""
        try:
            decoded = objects.decode(self.resource.type, bytes(raw))
        except objects.ObjectError as error:
            identity = _identity(raw)
            self._on_problem(f"ignored: {error}")
            return identity, None
        return cast(_HasMetadata, decoded).metadata, decoded

    def _advance(self, version: str) -> None:
        """Note the version of an event; a watch resumes from the newest."""
        newer = number(version)
        if newer > self._number or not version.isdecimal():
            self._version, self._number = version, newer

    async def _pause(self, error: ApiError | ConnectionFailed | _Malformed, doing: str) -> None:
        wait = self._backoff.delay(error.retry_after if isinstance(error, ApiError) else 0.0)
        if self.failing_since is None:
            self.failing_since = self._clock.monotonic()
        self._on_problem(f"cannot {doing} {self.resource.plural}: {error}; trying again in {wait:.1f} s")
        await self._rest(wait)

    async def _rest(self, seconds: float) -> None:
        """Wait, but not on where somebody wants to catch up from then on: the server has answered them."""
        self._hurry.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()


def _identity(raw: msgspec.Raw) -> _Meta:
    try:
        return _decode_identity(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _Malformed(f"an object without metadata ({error})") from error
