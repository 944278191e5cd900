"""Lists and watches: what resourceVersion, resourceVersionMatch, limit, continue and the selectors mean.

Rules (https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list): unset means the most
recent, `0` any, a version NotOlderThan (the default) or Exact. A continue token carries the first page's version and
the key to go on from; its pages are all of that version, and it expires with the window.
"""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from policyengine.clock import Clock
from policyengine.simulator.api_server import fields
from policyengine.simulator.api_server.representation import View
from policyengine.simulator.api_server.requests import is_true
from policyengine.simulator.api_server.selectors import (
    FieldSelector,
    LabelSelector,
    matches_fields,
    matches_labels,
    parse_fields,
    parse_labels,
)
from policyengine.simulator.api_server.statuses import (
    ApiError,
    Cause,
    Json,
    bad_request,
    expired,
    invalid,
    too_large_resource_version,
)
from policyengine.simulator.api_server.storage import (
    ADDED,
    Collection,
    Object,
    Store,
    decode,
    encode,
    metadata,
)
from policyengine.simulator.api_server.watch import Predicate, WatchStream

FRESHNESS_WAIT = 3.0
DEFAULT_WATCH_SECONDS = 1800.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A list's or watch's query, checked."""

    labels: LabelSelector
    fields: FieldSelector
    version: str
    match: str
    limit: int
    token: str
    timeout: float | None
    bookmarks: bool
    initial_events: bool | None

    @property
    def revision(self) -> int:
        """The version asked for, 0 for none."""
        return int(self.version or 0)

    def predicate(self) -> Predicate | None:
        """Whether an object is selected; None selects all."""
        if not self.labels and not self.fields:
            return None
        return self._selects

    def _selects(self, obj: Object) -> bool:
        if self.labels and not matches_labels(self.labels, fields.labels_of(obj)):
            return False
        return not self.fields or matches_fields(self.fields, fields.reader(obj))


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error


def parse_options(query: Mapping[str, str], watching: bool, name: str = "") -> ListOptions:
    """The options of a query; raises 400 and 422 as the real server does."""
    version = query.get("resourceVersion", "")
    if version and not version.isdecimal():
        text = f'Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        if watching:
            raise ApiError(500, "", f"resourceVersion: {text}")
        raise bad_request(f"invalid resource version: resourceVersion: {text}")
    by_name = f"metadata.name={name}" if name else ""
    selector = ",".join(part for part in (by_name, query.get("fieldSelector", "")) if part)
    seconds = _integer(query, "timeoutSeconds")
    initial = query.get("sendInitialEvents")
    options = ListOptions(
        labels=parse_labels(query.get("labelSelector", "")),
        fields=parse_fields(selector),
        version=version,
        match=query.get("resourceVersionMatch", ""),
        limit=_integer(query, "limit"),
        token=query.get("continue", ""),
        timeout=float(seconds) if seconds > 0 else None,
        bookmarks=is_true(query.get("allowWatchBookmarks")),
        initial_events=None if initial is None else is_true(initial),
    )
    _check(options, watching)
    return options


def _check(options: ListOptions, watching: bool) -> None:
    faults: list[Cause] = []

    def forbid(field: str, why: str) -> None:
        faults.append(Cause("FieldValueForbidden", field, f"Forbidden: {why}"))

    if options.initial_events is not None and not watching:
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if options.initial_events is not None and options.match != "NotOlderThan" and watching:
        forbid("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    if options.match and watching and options.initial_events is None:
        forbid(
            "resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    if options.match and not watching:
        if not options.version:
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
        if options.token:
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
        if options.match not in ("Exact", "NotOlderThan"):
            text = f'Unsupported value: "{options.match}": supported values: "Exact", "NotOlderThan", ""'
            faults.append(Cause("FieldValueNotSupported", "resourceVersionMatch", text))
        if options.match == "Exact" and options.version == "0":
            forbid("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if faults:
        raise invalid("ListOptions", "meta.k8s.io", "", faults)


def make_token(revision: int, after: str) -> str:
    """A continue token: the version and the key the next page starts from."""
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": f"/{after}\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_token(token: str) -> tuple[int, str]:
    """`(revision, key to start from)`; raises a 400."""
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    try:
        found = json.loads(text)
        version, start = int(found["rv"]), str(found["start"])
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request(
            "invalid continue token: continue key is not valid: invalid character looking for beginning of value"
        ) from error
    return version, start.removeprefix("/")


class Lister:
    """Answers lists and watches over a store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def fresh(self, options: ListOptions) -> None:
        """Wait until the store has reached the version asked for; raises a 504."""
        asked = options.revision
        if options.token or asked <= self._store.revision:
            return
        deadline = self._clock.monotonic() + min(FRESHNESS_WAIT, options.timeout or FRESHNESS_WAIT)
        while asked > self._store.revision:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise too_large_resource_version(asked, self._store.revision)
            await self._clock.sleep(min(0.05, left))

    async def answer(self, collection: Collection, view: View, namespace: str, options: ListOptions) -> bytes:
        """The list's body."""
        await self.fresh(options)
        revision, start = self._where(collection, namespace, options)
        chosen, last = self._page(collection, namespace, options, revision, start)
        meta: dict[str, Json] = {"resourceVersion": str(revision)}
        if last is not None:
            key, remaining = last
            scoped = key.partition("/")[2] if namespace else key
            meta["continue"] = make_token(revision, scoped)
            if options.predicate() is None:
                meta["remainingItemCount"] = remaining
        return view.whole_list(chosen, meta)

    def _where(self, collection: Collection, namespace: str, options: ListOptions) -> tuple[int, str]:
        if options.token:
            revision, start = read_token(options.token)
            if revision < collection.oldest:
                raise expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start "
                    "a new list without the continue parameter, or use the continue token in this response to "
                    "retrieve the remainder of the results. Continuing with the provided token results in an "
                    "inconsistent list - objects that were created, modified, or deleted between the time the first "
                    "chunk was returned and now may show up in the list."
                )
            return min(revision, self._store.revision), f"{namespace}/{start}" if namespace else start
        exact = options.match == "Exact" or (not options.match and options.limit > 0 and options.revision > 0)
        if exact:
            if options.revision < collection.oldest:
                raise expired("The resourceVersion for the provided list is too old.")
            return options.revision, ""
        return self._store.revision, ""

    def _page(
        self, collection: Collection, namespace: str, options: ListOptions, revision: int, start: str
    ) -> tuple[list[bytes], tuple[str, int] | None]:
        """The page's objects, and where more follow: its last key and how many are left."""
        rows = self._rows(collection, namespace, revision, start)
        predicate, limit = options.predicate(), options.limit
        chosen: list[bytes] = []
        for at, (key, raw) in enumerate(rows):
            if predicate is not None and not predicate(decode(raw)):
                continue
            chosen.append(raw)
            if limit and len(chosen) == limit:
                rest = rows[at + 1 :]
                return chosen, (key, len(rest)) if rest else None
        return chosen, None

    def _rows(self, collection: Collection, namespace: str, revision: int, start: str) -> list[tuple[str, bytes]]:
        if revision >= self._store.revision:
            entries = collection.entries
            return [(key, entries[key].raw) for key in collection.keys(namespace, start)]
        prefix = f"{namespace}/" if namespace else ""
        state = collection.at(revision)
        return [(key, raw) for key, raw in state.items() if key >= start and key.startswith(prefix)]

    async def watch(
        self, collection: Collection, view: View, namespace: str, options: ListOptions, empty: Object
    ) -> AsyncIterator[bytes]:
        """A started watch; `empty` is the kind's zero object, of which bookmarks are made."""
        if options.initial_events:
            await self.fresh(options)
        initial = options.initial_events if options.initial_events is not None else options.revision == 0
        revision = self._store.revision if initial else options.revision or self._store.revision
        stream = WatchStream(collection, view, namespace, options.predicate(), revision)
        if not initial and revision < collection.oldest:
            too_old = expired(f"too old resource version: {revision} ({collection.oldest})")
            stream.push(b'{"type":"ERROR","object":' + encode(too_old.status()) + b"}\n")
            stream.close()
            return stream
        if initial:
            self._send_state(stream, collection, view, namespace, options)
            if options.initial_events:
                stream.push(self._bookmark(view, empty, {INITIAL_EVENTS_END: "true"}))
        else:
            for change in collection.since(revision):
                stream.offer(change)
        bookmark = (lambda: self._bookmark(view, empty, None)) if options.bookmarks else None
        stream.start(self._clock, options.timeout or DEFAULT_WATCH_SECONDS, bookmark)
        return stream

    def _send_state(
        self, stream: WatchStream, collection: Collection, view: View, namespace: str, options: ListOptions
    ) -> None:
        predicate = options.predicate()
        for key in collection.keys(namespace):
            raw = collection.entries[key].raw
            if predicate is None or predicate(decode(raw)):
                stream.push(view.frame(ADDED, raw))

    def _bookmark(self, view: View, empty: Object, annotations: dict[str, Json] | None) -> bytes:
        obj = decode(encode(empty))
        meta = metadata(obj)
        meta["resourceVersion"] = str(self._store.revision)
        if annotations:
            meta["annotations"] = annotations
        return view.frame("BOOKMARK", encode(obj))
