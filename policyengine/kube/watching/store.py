"""The objects of one kind as lists and watches tell of them: a store as client-go's, filled from pages and lines.

Rules:
1. An object's version only grows. What is not newer than what was seen of the object, its deletion included, is no
   news: duplicates, lines out of order and answers of a lagging server change nothing.
2. An object that a list no longer has was deleted, whatever events said or missed.
3. A line is applied whole or not at all; those before one that cannot be read stand.
4. An object that cannot be read is reported, and stays as it was known.
5. What a list shows that cannot be, a server whose versions only grow given, is no news either: it raises `WentBack`.
   Once the server is known to have gone back, whatever a list shows is `anew`, whichever version was known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic

import msgspec
from cachetools import LRUCache

from policyengine.cluster.kinds import Kind, T
from policyengine.cluster.objects import ObjectError, ObjectMeta, decode
from policyengine.kube.http.client import ApiError, error_of

TOMBSTONES = 16_384
"""Deletions remembered, against events that come after them out of order."""


@dataclass(slots=True)
class Observed(Generic[T]):
    """An object was added or changed. Not frozen: one is made for every watch event, and a frozen one takes longer."""

    object: T
    anew: bool = False
    """Whether it replaces what was known of it, whichever version that had: the server has gone back."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object is gone, or left what is selected."""

    namespace: str
    name: str
    uid: str


Change = Observed[T] | Deleted


class _WatchEvent(msgspec.Struct):
    """One line of a watch; the object is decoded once its type is known."""

    type: str
    object: msgspec.Raw


class Meta(msgspec.Struct, rename="camel"):
    """What tells an object and its version apart from others."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identity(msgspec.Struct):
    """What every object has, also one that cannot be read otherwise."""

    metadata: Meta


_decode_event = msgspec.json.Decoder(_WatchEvent).decode
_decode_identity = msgspec.json.Decoder(_Identity).decode


class Malformed(Exception):
    """A line that is no watch event, or an object without metadata."""


class WentBack(Exception):
    """The server's versions went back; the message says why that is known."""


class Store(Generic[T]):
    """Takes pages and lines in, gives changes out. Keys are `namespace/name`."""

    def __init__(self, resource: Kind[T], on_problem: Callable[[str], None]) -> None:
        self.version = ""
        """The newest resourceVersion seen, from which a watch resumes; empty before the first list."""
        self.since = 0
        """The version from which the open watch was asked for, or went on: it shows nothing that is older."""
        self.generation = 0
        """Of the server (`ServerHistory`), that all versions here belong to."""
        self.anew = False
        """Whether what is observed replaces what was known before, whichever version that had."""
        self.texts: dict[str, bytes] | None = None
        """Each object as the server sent it last, where somebody set this to {} before the first list."""
        self._type = resource.type
        self._on_problem = on_problem
        self._seen: dict[str, tuple[str, int]] = {}
        """UID and version of what was observed last."""
        self._deleted: LRUCache[str, int] = LRUCache(TOMBSTONES)
        """UID -> the version at which it was deleted, of those deleted lately."""

    def __len__(self) -> int:
        return len(self._seen)

    def keys(self) -> set[str]:
        """Those of all objects."""
        return set(self._seen)

    def uid(self, namespace: str, name: str) -> str:
        """The object's UID; "" for one that does not exist."""
        return self.seen(namespace, name)[0]

    def seen(self, namespace: str, name: str) -> tuple[str, int]:
        """The object's UID and version; ("", 0) for one that does not exist."""
        return self._seen.get(f"{namespace}/{name}", ("", 0))

    def text(self, name: str, namespace: str = "") -> bytes | None:
        """The object as the server sent it last; None where it does not exist, or texts are not kept."""
        return (self.texts or {}).get(f"{namespace}/{name}")

    def apply_page(self, items: Iterable[msgspec.Raw], missing: set[str], version: int) -> list[Change[T]]:
        """What a page of a list of that version changes; the keys of its objects are taken out of `missing`. Raises
        `WentBack`."""
        changes: list[Change[T]] = []
        for raw in items:
            meta, decoded = self._decode(raw)
            self._refuse_contradiction(meta, version)
            missing.discard(f"{meta.namespace}/{meta.name}")
            change = self._observe(meta, decoded, raw)
            if change is not None:
                changes.append(change)
        return changes

    def apply_lines(self, lines: list[bytes]) -> tuple[list[Change[T]], ApiError | Malformed | None]:
        """What the lines of a watch change, up to the first that cannot be applied, and why that cannot."""
        changes: list[Change[T]] = []
        try:
            for line in lines:
                change = self._apply(line)
                if change is not None:
                    changes.append(change)
        except (ApiError, Malformed) as error:
            return changes, error
        return changes, None

    def forget_keys(self, keys: Iterable[str], version: int) -> list[Deleted]:
        """The deletion of what a list of that version does not have."""
        gone = [self._drop(key) for key in keys]
        for one in gone:
            self._deleted[one.uid] = version
        return gone

    def _refuse_contradiction(self, meta: Meta | ObjectMeta, listed: int) -> None:
        """Whether a list of the version `listed` can show that object: not older than it was seen by then."""
        known, version = self.seen(meta.namespace, meta.name), number(meta.resource_version)
        seen = known[1] if known[0] == meta.uid else self._deleted.get(meta.uid, 0)
        if 0 < version < seen <= listed:
            was = "was seen" if known[0] == meta.uid else "was gone"
            raise WentBack(f"`{meta.namespace}/{meta.name}` is listed at version {version}, and {was} at {seen}")

    def read_as(self, form: type[T]) -> None:
        """The server tells of the kind in the version that `form` reads: an object is news in another one, whichever
        resourceVersion was known."""
        if form is not self._type:
            self._type = form
            self.believe_anything(self.generation)

    def believe_anything(self, generation: int) -> None:
        """The server, of that generation, has gone back, or tells of another version of the API: no version counts as
        seen, and no deletion."""
        self.generation, self.version, self.since, self.anew = generation, "", 0, True
        self._seen = {key: (uid, 0) for key, (uid, _) in self._seen.items()}
        self._deleted.clear()

    def _apply(self, line: bytes) -> Change[T] | None:
        """What one line changes; None for bookmarks and for what is not news."""
        if not line.strip():
            return None
        try:
            event = _decode_event(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Malformed(f"a line is no watch event ({error})") from error
        if event.type == "ERROR":
            raise error_of(500, bytes(event.object))
        if event.type in ("ADDED", "MODIFIED"):
            found, decoded = self._decode(event.object)
            self._advance(found.resource_version)
            return self._observe(found, decoded, event.object)
        if event.type not in ("DELETED", "BOOKMARK"):
            raise Malformed(f"a watch event of type `{event.type}`")
        meta = identity(event.object)
        if event.type == "BOOKMARK":
            self.since = number(self.version)  # it comes after all that was told before
        self._advance(meta.resource_version)
        return self._forget(meta) if event.type == "DELETED" else None

    def _decode(self, raw: msgspec.Raw) -> tuple[Meta | ObjectMeta, T | None]:
        """An object; one that cannot be read is reported and left as it was known."""
        try:
            decoded: Any = decode(self._type, bytes(raw))
        except ObjectError as error:
            meta = identity(raw)
            self._on_problem(f"ignored: {error}")
            return meta, None
        return decoded.metadata, decoded

    def _advance(self, version: str) -> None:
        """Note the version of an event; a watch resumes from the newest. Raises `Malformed` for one that cannot be."""
        if 0 < number(version) < self.since:
            raise Malformed(f"version {version} on a watch from {self.since} on")
        if number(version) > number(self.version) or not version.isdecimal():
            self.version = version

    def _observe(self, meta: Meta | ObjectMeta, decoded: T | None, raw: msgspec.Raw) -> Change[T] | None:
        """The object, if it is newer than what is known of it. `decoded`: None for one that cannot be read."""
        key, version = f"{meta.namespace}/{meta.name}", number(meta.resource_version)
        known = self._seen.get(key, ("", 0))
        seen = known[1] if known[0] == meta.uid else self._deleted.get(meta.uid, 0)
        if decoded is None or 0 < version <= seen:
            return None
        if known[0] not in ("", meta.uid):
            if 0 < version < known[1]:
                return None
            self._deleted[known[0]] = version
        self._seen[key] = (meta.uid, version)
        if self.texts is not None:
            self.texts[key] = bytes(raw)
        return Observed(decoded, self.anew)

    def _forget(self, meta: Meta) -> Deleted | None:
        """The deletion of what is known; an older one, or that of an earlier object of the name, is no news."""
        key, version = f"{meta.namespace}/{meta.name}", number(meta.resource_version)
        uid, seen = self._seen.get(key, ("", 0))
        if version and version < seen and uid == meta.uid:
            return None
        self._deleted[meta.uid] = max(version, self._deleted.get(meta.uid, 0))
        if key not in self._seen or (meta.uid and uid != meta.uid):
            return None
        return self._drop(key)

    def _drop(self, key: str) -> Deleted:
        uid, _ = self._seen.pop(key)
        if self.texts is not None:
            self.texts.pop(key, None)
        namespace, _, name = key.rpartition("/")
        return Deleted(namespace, name, uid)


_MOST_DIGITS = 39


def number(version: str) -> int:
    """A resourceVersion as a number, which KEP-5504 lets clients compare; 0 for one that is none, or is longer than the
    128 bits it may have."""
    return int(version) if version.isdecimal() and len(version) <= _MOST_DIGITS else 0


def identity(raw: bytes | msgspec.Raw) -> Meta:
    """What tells an object apart, of its JSON. Raises `Malformed`."""
    try:
        return _decode_identity(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Malformed(f"an object without metadata ({error})") from error
