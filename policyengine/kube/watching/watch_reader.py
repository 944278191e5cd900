"""Reads what a list or a watch sends of one kind, whole objects and lines, into what is known of it.

1. A line is applied whole or not at all; those before one that cannot be read stand.
2. An object that cannot be read is reported, and stays as it was known.
3. The version only grows, until a list says otherwise (`reach`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, cast

import msgspec

from policyengine.cluster import objects
from policyengine.cluster.kinds import Kind, T
from policyengine.kube.http.client import ApiError, error_of
from policyengine.kube.watching.store import Change, KnownObjects, key_of, number


class _WatchEvent(msgspec.Struct):
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


_decode_event = msgspec.json.Decoder(_WatchEvent).decode
_decode_identity = msgspec.json.Decoder(_Identity).decode


class Malformed(Exception):
    """A line that is no watch event, or an object without metadata."""


class WatchReader(Generic[T]):
    """Takes pages and lines in, gives changes out."""

    def __init__(self, resource: Kind[T], known: KnownObjects[T], on_problem: Callable[[str], None]) -> None:
        self.version = ""
        """The newest resourceVersion seen, from which a watch resumes; empty before the first list."""
        self.number = 0
        """The version as a number."""
        self._type = resource.type
        self._known = known
        self._on_problem = on_problem
        self._decode_told: Callable[[bytes], _Told[T]] = msgspec.json.Decoder(_Told[resource.type]).decode  # type: ignore[name-defined]

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

    def _decode(self, raw: msgspec.Raw) -> tuple[_Meta | objects.ObjectMeta, T | None]:
        """An object; one that cannot be read is reported and left as it was known."""
        try:
            decoded = objects.decode(self._type, bytes(raw))
        except objects.ObjectError as error:
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
