"""Storage: every object as encoded JSON under one growing revision, a bounded window of changes.

Rules this file owns:
1. A resourceVersion is the store's revision at the write; one write, one revision, over all kinds.
2. Objects are held as bytes without `kind` and `apiVersion`, encoded once a version and shared by every reader;
   nobody changes what is stored in place.
3. A collection holds its last `window` changes, each with the object before it. So any state since `oldest` can be
   told again: a watch resumes from there, a list at an exact revision rolls the present back.
4. Watchers see each change once, in order, in the same call that made it.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, cast

import msgspec

from policyengine.simulator.api_server.statuses import Json

Object = dict[str, Json]
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
FIRST_REVISION = 1


def encode(value: object) -> bytes:
    """Compact JSON."""
    return _encoder.encode(value)


def decode(raw: bytes) -> Object:
    """A stored object, fresh: the caller may change it."""
    return cast(Object, _decoder.decode(raw))


def metadata(obj: Object) -> Object:
    """The object's metadata."""
    return cast(Object, obj["metadata"])


def objects(value: Json) -> list[Object]:
    """The objects of a list field; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(value: Json) -> list[str]:
    """The items of a list field as text; empty for anything else."""
    return [str(item) for item in value] if isinstance(value, list) else []


def child(obj: Object, *names: str) -> Object:
    """A nested object, or an empty one that is not part of `obj`."""
    for name in names:
        below = obj.get(name)
        obj = below if isinstance(below, dict) else {}
    return obj


@dataclass(slots=True)
class Entry:
    """One stored object."""

    namespace: str
    name: str
    uid: str
    revision: int
    raw: bytes

    def object(self) -> Object:
        """The object, decoded afresh."""
        return decode(self.raw)


@dataclass(frozen=True, slots=True)
class Change:
    """One write as watchers see it: the object as written (for DELETED: as it was last), and before."""

    type: str
    key: str
    namespace: str
    revision: int
    raw: bytes
    prev: bytes | None


class Watcher(Protocol):
    """Who is told of changes."""

    def offer(self, change: Change) -> None:
        """Take one change; must not block."""

    def close(self) -> None:
        """There will be no more."""


class Collection:
    """The objects of one resource, in key order, and their recent changes."""

    def __init__(self, window: int) -> None:
        self.entries: dict[str, Entry] = {}
        """By `namespace/name`, or `name`."""
        self.changes: deque[Change] = deque()
        self.oldest = FIRST_REVISION
        self.watchers: list[Watcher] = []
        self._order: list[str] = []
        self._window = window

    def keys(self, namespace: str = "", after: str = "") -> Iterator[str]:
        """Keys in order, of one namespace or all, from `after` on (inclusive)."""
        prefix = f"{namespace}/" if namespace else ""
        at = bisect_left(self._order, max(prefix, after))
        while at < len(self._order):
            key = self._order[at]
            if prefix and not key.startswith(prefix):
                return
            yield key
            at += 1

    def put(self, key: str, entry: Entry) -> Change:
        """Store an object and tell everyone."""
        before = self.entries.get(key)
        self.entries[key] = entry
        if before is None:
            insort(self._order, key)
            return self._tell(Change(ADDED, key, entry.namespace, entry.revision, entry.raw, None))
        return self._tell(Change(MODIFIED, key, entry.namespace, entry.revision, entry.raw, before.raw))

    def remove(self, key: str, last: Entry) -> Change:
        """Drop an object; `last` is how it goes, at the deletion's revision."""
        before = self.entries.pop(key)
        del self._order[bisect_left(self._order, key)]
        return self._tell(Change(DELETED, key, last.namespace, last.revision, last.raw, before.raw))

    def _tell(self, change: Change) -> Change:
        self.changes.append(change)
        while len(self.changes) > self._window:
            self.oldest = self.changes.popleft().revision
        for watcher in tuple(self.watchers):
            watcher.offer(change)
        return change

    def since(self, revision: int) -> list[Change]:
        """The changes after `revision`; the caller has checked that it is not older than `oldest`."""
        newer: list[Change] = []
        for change in reversed(self.changes):
            if change.revision <= revision:
                break
            newer.append(change)
        newer.reverse()
        return newer

    def at(self, revision: int) -> dict[str, bytes]:
        """All objects by key as they were at `revision`, in key order."""
        state = {key: self.entries[key].raw for key in self._order}
        rolled = False
        for change in reversed(self.since(revision)):
            rolled = True
            if change.prev is None:
                state.pop(change.key, None)
            else:
                state[change.key] = change.prev
        return dict(sorted(state.items())) if rolled else state

    def as_of(self, revision: int | None, key: str) -> bytes | None:
        """One object as it was at `revision` (None: as it is); None where it was not there."""
        if revision is not None:
            return self.at(max(revision, self.oldest)).get(key)
        entry = self.entries.get(key)
        return entry.raw if entry else None

    def compact(self, revision: int) -> None:
        """Forget every change up to `revision`: who asks for an older one is told 410."""
        while self.changes and self.changes[0].revision <= revision:
            self.changes.popleft()
        self.oldest = max(self.oldest, revision)


class Store:
    """All collections under one revision."""

    def __init__(self, window: int) -> None:
        self.revision = FIRST_REVISION
        self._window = window
        self.collections: dict[tuple[str, str], Collection] = {}
        """By `(group, plural)`."""

    def collection(self, key: tuple[str, str]) -> Collection:
        """The collection of `(group, plural)`, made on first use."""
        found = self.collections.get(key)
        if found is None:
            found = self.collections[key] = Collection(self._window)
        return found

    def drop(self, key: tuple[str, str]) -> None:
        """Forget a collection (its CustomResourceDefinition is gone)."""
        self.collections.pop(key, None)

    def next_revision(self) -> int:
        """The revision of the next write."""
        self.revision += 1
        return self.revision

    def compact(self) -> None:
        """Forget all history, as an API server does that starts anew over an old etcd."""
        for collection in self.collections.values():
            collection.compact(self.revision)


def key_of(namespace: str, name: str) -> str:
    """The key in a collection."""
    return f"{namespace}/{name}" if namespace else name
