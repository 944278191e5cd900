"""What was seen of the objects of one kind: a store as client-go's, and the reader that fills it from pages and lines.

Rules:
1. An object's version only grows. What is not newer than what was seen of the object, its deletion included, is no
   news: duplicates, lines out of order and answers of a lagging server change nothing.
2. An object that a list no longer has was deleted, whatever events said or missed.
3. A line is applied whole or not at all; those before one that cannot be read stand.
4. An object that cannot be read is reported, and stays as it was known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, cast

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


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object is gone, or left what is selected."""

    namespace: str
    name: str
    uid: str


Change = Observed[T] | Deleted


class Identity(Protocol):
    """What tells an object and its version apart from others."""

    @property
    def name(self) -> str:
        """Within the namespace."""

    @property
    def namespace(self) -> str:
        """Empty for what has none."""

    @property
    def uid(self) -> str:
        """Never given twice."""

    @property
    def resource_version(self) -> str:
        """A number."""


class Store(Generic[T]):
    """The objects of one kind as far as lists and watches told of them."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int]] = {}
        """namespace/name -> UID and version of what was observed last."""
        self._deleted: LRUCache[str, int] = LRUCache(TOMBSTONES)
        """UID -> the version at which it was deleted, of those deleted lately."""
        self._texts: dict[str, bytes] | None = None

    def __len__(self) -> int:
        return len(self._seen)

    def __contains__(self, key: str) -> bool:
        return key in self._seen

    def keys(self) -> set[str]:
        """`namespace/name` of each."""
        return set(self._seen)

    def uid(self, namespace: str, name: str) -> str:
        """The object's UID; "" for one that does not exist."""
        return self._seen.get(key_of(namespace, name), ("", 0))[0]

    def keep_texts(self) -> None:
        """Keep every object as the server sent it, too, for `text`; before the first."""
        self._texts = {}

    def text(self, namespace: str, name: str) -> bytes | None:
        """An object as the server sent it last; None where it does not exist, or texts are not kept."""
        return None if self._texts is None else self._texts.get(key_of(namespace, name))

    def observe(self, meta: Identity, decoded: T | None, raw: bytes | msgspec.Raw = b"") -> Change[T] | None:
        """The object, if it is newer than what is known of it. `decoded`: None for one that cannot be read; `raw`: its
        text, where texts are kept."""
        key, version = key_of(meta.namespace, meta.name), number(meta.resource_version)
        known = self._seen.get(key, ("", 0))
        seen = known[1] if known[0] == meta.uid else self._deleted.get(meta.uid, 0)
        if decoded is None or 0 < version <= seen:
            return None
        if known[0] not in ("", meta.uid):
            if 0 < version < known[1]:
                return None
            self._deleted[known[0]] = version
        self._seen[key] = (meta.uid, version)
        if self._texts is not None:
            self._texts[key] = bytes(raw)
        return Observed(decoded)

    def forget(self, meta: Identity) -> Deleted | None:
        """The deletion of what is known; an older one, or that of an earlier object of the name, is no news."""
        key, version = key_of(meta.namespace, meta.name), number(meta.resource_version)
        uid, seen = self._seen.get(key, ("", 0))
        if version and version < seen and uid == meta.uid:
            return None
        self._deleted[meta.uid] = max(version, self._deleted.get(meta.uid, 0))
        if key not in self._seen or (meta.uid and uid != meta.uid):
            return None
        return self._drop(key)

    def forget_keys(self, keys: Iterable[str], version: int) -> list[Deleted]:
        """The deletion of what a list of that version does not have."""
        gone = [self._drop(key) for key in keys]
        for one in gone:
            self._deleted[one.uid] = version
        return gone

    def believe_anything(self) -> None:
        """The server may have gone back: no version counts as seen, and no deletion."""
        self._seen = {key: (uid, 0) for key, (uid, _) in self._seen.items()}
        self._deleted.clear()

    def _drop(self, key: str) -> Deleted:
        uid, _ = self._seen.pop(key)
        if self._texts is not None:
            self._texts.pop(key, None)
        namespace, _, name = key.rpartition("/")
        return Deleted(namespace, name, uid)


def key_of(namespace: str, name: str) -> str:
    """`namespace/name`."""
    return f"{namespace}/{name}"


def number(version: str) -> int:
    """A resourceVersion as a number, which KEP-5504 lets clients compare; 0 for one that is none."""
    return int(version) if version.isdecimal() else 0


class _WatchEvent(msgspec.Struct):
    """One line of a watch; the object is decoded once its type is known."""

    type: str
    object: msgspec.Raw


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
    def metadata(self) -> ObjectMeta: ...


_decode_event = msgspec.json.Decoder(_WatchEvent).decode
_decode_identity = msgspec.json.Decoder(_Identity).decode


class Malformed(Exception):
    """A line that is no watch event, or an object without metadata."""


class WatchReader(Generic[T]):
    """Takes pages and lines in, gives changes out."""

    def __init__(self, resource: Kind[T], known: Store[T], on_problem: Callable[[str], None]) -> None:
        self.version = ""
        """The newest resourceVersion seen, from which a watch resumes; empty before the first list."""
        self.number = 0
        """The version as a number."""
        self._type = resource.type
        self._known = known
        self._on_problem = on_problem

    def reach(self, version: str) -> None:
        """What is known is what a list of this version had."""
        self.version, self.number = version, number(version)

    def apply_page(self, items: Iterable[msgspec.Raw], missing: set[str]) -> list[Change[T]]:
        """What a page of a list changes; the keys of its objects are taken out of `missing`."""
        changes: list[Change[T]] = []
        for raw in items:
            meta, decoded = self._decode(raw)
            missing.discard(key_of(meta.namespace, meta.name))
            change = self._known.observe(meta, decoded, raw)
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
            meta, decoded = self._decode(event.object)
            self._advance(meta.resource_version)
            return self._known.observe(meta, decoded, event.object)
        if event.type not in ("DELETED", "BOOKMARK"):
            raise Malformed(f"a watch event of type `{event.type}`")
        identity = _identity(event.object)
        self._advance(identity.resource_version)
        return self._known.forget(identity) if event.type == "DELETED" else None

    def _decode(self, raw: msgspec.Raw) -> tuple[_Meta | ObjectMeta, T | None]:
        """An object; one that cannot be read is reported and left as it was known."""
        try:
            decoded = decode(self._type, bytes(raw))
        except ObjectError as error:
            identity = _identity(raw)
            self._on_problem(f"ignored: {error}")
            return identity, None
        return cast(_HasMetadata, decoded).metadata, decoded

    def _advance(self, version: str) -> None:
        """Note the version of an event; a watch resumes from the newest."""
        newer = number(version)
        if newer > self.number or not version.isdecimal():
            self.version, self.number = version, newer


def _identity(raw: msgspec.Raw) -> _Meta:
    try:
        return _decode_identity(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Malformed(f"an object without metadata ({error})") from error
