"""One file of a recording: frames behind a few bytes that say what it is.

    file   = "policyengine recording 1\\n", frame, frame, …
    frame  = length of the compressed bytes, length of the payload, CRC-32 of both and of the compressed bytes (each 4
             bytes, big endian), then the compressed bytes
    payload = a MessagePack array of entries (`encoding`)

The compressed bytes of all frames together are one zstandard stream, flushed at the end of each frame: what comes
again, a name or a UID, costs a few bytes wherever in the file it stood first. A file is read from its beginning; what a
process that was killed has left of its last frame is passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, cast
from zlib import crc32

import msgspec
import zstandard

from policyengine.recording.encoding import Entry, UnreadableEntry, read_entry

MAGIC: Final = b"policyengine recording 1\n"
LEVEL: Final = 1
"""Smaller than zstandard's own default, 3, on what recordings hold, and a third less CPU (`benchmarks recording`)."""
LARGEST: Final = 1 << 26
"""Bytes of a frame, compressed or not: a recording from a stranger takes no more memory. What is written is a sixteenth
of it, and one entry."""
_LONGEST: Final = len(MAGIC) + 8
"""Bytes of a first line that says a version."""
_LENGTHS: Final = struct.Struct(">II")
_CHECKSUM: Final = struct.Struct(">I")
_HEADER: Final = _LENGTHS.size + _CHECKSUM.size


class UnusableRecording(ValueError):
    """Bytes that are no recording, or are damaged, or of another version; the message says which."""


class SegmentWriter:
    """Makes the bytes of one file."""

    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor(level=LEVEL).compressobj()

    def frame(self, entries: Sequence[bytes]) -> bytes:
        """The bytes of one frame; with the earlier ones they can be read."""
        payload = b"\xdd" + struct.pack(">I", len(entries)) + b"".join(entries)
        compressed = self._stream.compress(payload) + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        lengths = _LENGTHS.pack(len(compressed), len(payload))
        return lengths + _CHECKSUM.pack(crc32(compressed, crc32(lengths))) + compressed


class SegmentReader:
    """Reads the entries of one file. `cut` says afterwards whether its end is missing."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """`name`: for messages. Raises `UnusableRecording`."""
        self.cut = False
        """Whether the last frame was not written whole."""
        self._file = file
        self._name = name
        self._pending = b""
        begin = file.readline(_LONGEST)
        if begin != MAGIC:
            raise UnusableRecording(f"{name}: {_foreign(begin)}")
        self._stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(cast("BinaryIO", self))

    def read(self, size: int) -> bytes:
        """The next compressed bytes: what the decompressor asks for."""
        given, self._pending = self._pending[:size], self._pending[size:]
        return given

    def frames(self) -> Iterator[list[Entry]]:
        """The entries of each whole frame. Raises `UnusableRecording` at a damaged one."""
        number = 0
        while header := self._file.read(_HEADER):
            number += 1
            if len(header) < _HEADER:
                self.cut = True
                return
            length, whole = _LENGTHS.unpack_from(header)
            (checksum,) = _CHECKSUM.unpack_from(header, _LENGTHS.size)
            if max(length, whole) > LARGEST:
                raise self._damaged(number, "its length cannot be")
            compressed = self._file.read(length)
            if len(compressed) < length:
                self.cut = True
                return
            if crc32(compressed, crc32(header[: _LENGTHS.size])) != checksum:
                raise self._damaged(number, "its checksum does not match")
            self._pending = compressed
            try:
                payload = self._stream.read(whole)
                entries = [read_entry(raw) for raw in msgspec.msgpack.decode(payload, type=list[msgspec.Raw])]
            except (zstandard.ZstdError, msgspec.MsgspecError, UnreadableEntry) as error:
                raise self._damaged(number, str(error)) from error
            yield entries

    def _damaged(self, number: int, why: str) -> UnusableRecording:
        return UnusableRecording(f"{self._name}: frame {number} is damaged: {why}")


def _foreign(begin: bytes) -> str:
    same = MAGIC[:-2]
    version = begin.removeprefix(same).strip()
    if not begin:
        return "an empty file"
    if MAGIC.startswith(begin):
        return "its beginning was not written whole"
    if begin.startswith(same) and version.isdigit():
        return f"a recording of version {version.decode()}; this program reads version 1"
    return "no recording of policyengine"
