"""Lists and watches: what resourceVersion, limit and continue give.

Unset means the most recent, `0` whatever there is, a version NotOlderThan (the default) or Exact. All pages of a list
are of its first page's version. A continue token is that version and the key the next page starts from, as base64 of
JSON in k8s.io/apiserver's form; it expires with the collection's window. Version -1 in it means the newest.
"""

import base64
import json
import posixpath
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from policyengine.clock import Clock
from policyengine.simulator.api_server import statuses
from policyengine.simulator.api_server.decoding.json_and_yaml import fault
from policyengine.simulator.api_server.reading.list_options import EXACT, ListOptions
from policyengine.simulator.api_server.reading.representation import View
from policyengine.simulator.api_server.reading.watch import WatchStream
from policyengine.simulator.api_server.statuses import ApiError, Json, bad_request
from policyengine.simulator.api_server.storage import (
    ADDED,
    Collection,
    Object,
    Store,
    decode,
    encode,
    metadata,
)

FRESHNESS_WAIT = 3.0
DEFAULT_WATCH_SECONDS = 1800.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
INCONSISTENT = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Query:
    """What a list or watch is about: a collection, one namespace of it or all (empty), and the options."""

    collection: Collection
    namespace: str
    options: ListOptions


class Lister:
    """Answers lists and watches over a store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def fresh(self, asked: int, seconds: float | None = None) -> None:
        """Wait until the store has reached the version `asked`; raises a 504."""
        if asked <= self._store.revision:
            return
        deadline = self._clock.monotonic() + min(FRESHNESS_WAIT, seconds or FRESHNESS_WAIT)
        while asked > self._store.revision:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise statuses.too_large_resource_version(asked, self._store.revision)
            await self._clock.sleep(min(0.05, left))

    async def answer(self, query: Query, view: View, as_of: int | None = None) -> bytes:
        """The list's body; `as_of`: from that revision, where it would be the newest."""
        if not query.options.token:
            await self.fresh(query.options.revision, query.options.timeout)
        chosen, meta = self.page(query, as_of)
        return view.whole_list(chosen, meta)

    def page(self, query: Query, as_of: int | None = None) -> tuple[list[bytes], dict[str, Json]]:
        """The objects that a list answers with, and its metadata; raises 400 and 410."""
        options, collection = query.options, query.collection
        revision, start = self._where(query)
        if as_of is not None and revision == self._store.revision:
            revision = max(min(as_of, revision), collection.oldest)
        rows = self._rows(query, revision, start)
        # The watch cache answers version 0, and it answers whole.
        predicate, limit = options.predicate(), 0 if options.version == "0" and not options.token else options.limit
        meta: dict[str, Json] = {"resourceVersion": str(revision)}
        chosen: list[bytes] = []
        for at, (key, raw) in enumerate(rows):
            if predicate is not None and not predicate(decode(raw)):
                continue
            chosen.append(raw)
            if limit and len(chosen) == limit and at + 1 < len(rows):
                meta["continue"] = make_token(revision, key.partition("/")[2] if query.namespace else key)
                if predicate is None:
                    meta["remainingItemCount"] = len(rows) - at - 1
                break
        return chosen, meta

    def _where(self, query: Query) -> tuple[int, str]:
        """The revision to show, and the key to start from."""
        options, oldest, newest = query.options, query.collection.oldest, self._store.revision
        if options.token:
            if options.revision > 0:
                raise bad_request("specifying resource version is not allowed when using continue")
            revision, start = read_token(options.token)
            if revision != NEWEST and revision < oldest:
                error = statuses.expired(INCONSISTENT)
                error.continue_token = make_token(NEWEST, start.removesuffix("\0"))
                raise error
            start = f"{query.namespace}/{start}" if query.namespace else start
            return newest if revision == NEWEST else min(revision, newest), start
        exact = options.match == EXACT or (not options.match and options.limit > 0 and options.revision > 0)
        if not exact:
            return newest, ""
        if options.revision < oldest:
            raise statuses.expired("The resourceVersion for the provided list is too old.")
        return options.revision, ""

    def _rows(self, query: Query, revision: int, start: str) -> list[tuple[str, bytes]]:
        if revision >= self._store.revision:
            entries = query.collection.entries
            return [(key, entries[key].raw) for key in query.collection.keys(query.namespace, start)]
        prefix = f"{query.namespace}/" if query.namespace else ""
        state = query.collection.at(revision)
        return [(key, raw) for key, raw in state.items() if key >= start and key.startswith(prefix)]

    async def watch(self, query: Query, view: View, empty: Object) -> AsyncIterator[bytes]:
        """A started watch; `empty` is the kind's zero object, of which bookmarks are made."""
        options, collection = query.options, query.collection
        initial = options.initial_events if options.initial_events is not None else options.revision == 0
        revision = self._store.revision if initial else options.revision or self._store.revision
        predicate = options.predicate()
        stream = WatchStream(collection, view, query.namespace, predicate, revision)
        try:
            if options.initial_events:
                await self.fresh(options.revision, options.timeout)
            if not initial and revision < collection.oldest:
                raise statuses.expired(f"too old resource version: {revision} ({collection.oldest})")
        except ApiError as error:
            # A watch that began, and says at once why it ends.
            stream.push(b'{"type":"ERROR","object":' + encode(error.status()) + b"}\n")
            stream.close()
            return stream
        for change in () if initial else collection.since(revision):
            stream.offer(change)
        for key in collection.keys(query.namespace) if initial else ():
            raw = collection.entries[key].raw
            if predicate is None or predicate(decode(raw)):
                stream.push(view.frame(ADDED, raw))
        if options.initial_events and options.bookmarks:
            stream.push(self._bookmark(view, empty, {INITIAL_EVENTS_END: "true"}))
        bookmark = (lambda: self._bookmark(view, empty, None)) if options.bookmarks else None
        stream.start(self._clock, options.timeout or DEFAULT_WATCH_SECONDS, bookmark)
        return stream

    def _bookmark(self, view: View, empty: Object, annotations: dict[str, Json] | None) -> bytes:
        obj = decode(encode(empty))
        meta = metadata(obj)
        meta["resourceVersion"] = str(self._store.revision)
        if annotations:
            meta["annotations"] = annotations
        return view.frame("BOOKMARK", encode(obj))


VERSION = "meta.k8s.io/v1"
NEWEST = -1
_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")
_BAD = "continue key is not valid"


def make_token(revision: int, after: str) -> str:
    """A token for the page that begins behind the key `after`."""
    text = json.dumps({"v": VERSION, "rv": revision, "start": f"/{after}\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_token(token: str) -> tuple[int, str]:
    """`(revision, key to start from)`; raises a 400."""
    raw = _decode(token)
    try:
        found = json.loads(raw)
    except ValueError as error:
        raise _invalid(f": {fault(raw)}") from error
    held = found if isinstance(found, dict) else {}
    version, revision, start = held.get("v", ""), held.get("rv", 0), held.get("start", "")
    if not isinstance(version, str) or not isinstance(start, str) or type(revision) is not int:
        raise _invalid(": json: cannot unmarshal into Go value of type storage.continueToken")
    if version != VERSION:
        raise _invalid(f": server does not recognize this encoded version {version}")
    if revision == 0:
        raise _invalid(f": incorrect encoded start resourceVersion (version {VERSION})")
    if not start:
        raise _invalid(f": encoded start key empty (version {VERSION})")
    rooted = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(rooted) != rooted:
        raise _invalid(f": {start}")
    return revision, rooted[1:]


def _decode(token: str) -> bytes:
    good = _ALPHABET.match(token)
    at = good.end() if good else 0
    if at < len(token) or len(token) % 4 == 1:
        raise _invalid(f": illegal base64 data at input byte {at}")
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def _invalid(why: str) -> ApiError:
    return bad_request(f"invalid continue token: {_BAD}{why}")
