"""The files of a recording: one directory, one process that writes to it.

A file ends, and the next begins, when it is large or old; the oldest go when all together are too large. Files are
named by a number and in order: `000001.recording`. What has been written is the kernel's to keep: a process that is
killed loses no frame that was written, a machine that loses power may.
"""

from __future__ import annotations

import fcntl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from policyengine.recording.segment import MAGIC, SegmentWriter

SUFFIX: Final = ".recording"
FILE_SIZE, FILE_AGE, KEPT = 64 << 20, 3600.0, 10 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """When files end and go."""

    file_size: int = FILE_SIZE
    """Bytes from which a file is followed by another."""
    file_age: float = FILE_AGE
    """Seconds after which it is."""
    kept: int = KEPT
    """Bytes of all files above which the oldest are deleted."""


class DirectoryInUse(Exception):
    """Another process writes to the directory."""


class RecordingDirectory:
    """Writes frames. All methods but the first raise `OSError` where the disk is full or gone."""

    def __init__(self, path: Path, limits: Limits = Limits()) -> None:
        """Raises `OSError`, and `DirectoryInUse`."""
        self._path = path
        self._limits = limits
        path.mkdir(parents=True, exist_ok=True)
        self._lock = (path / "lock").open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise DirectoryInUse(f"{path} is being written by another process") from error
        self._number = max((_number(one) for one in files(path)), default=0)
        self._file: BinaryIO | None = None
        self._writer = SegmentWriter()
        self._size = 0
        self._began = 0.0

    def is_due(self, now: float) -> bool:
        """Whether another file should begin: `end_file`, and what is known goes first into the next frame."""
        limits = self._limits
        return self._file is not None and (self._size >= limits.file_size or now - self._began >= limits.file_age)

    def end_file(self) -> None:
        """The next frame is the first of another file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def write(self, entries: Sequence[bytes], now: float) -> None:
        """One frame, in a new file where none is open."""
        if self._file is None:
            self._drop_oldest()
            self._number += 1
            self._file = (self._path / f"{self._number:06}{SUFFIX}").open("xb", buffering=0)
            self._writer, self._size, self._began = SegmentWriter(), 0, now
            self._put(self._file, MAGIC)
        self._put(self._file, self._writer.frame(entries))

    def close(self) -> None:
        """End the file, and let others write to the directory."""
        self.end_file()
        self._lock.close()

    def _put(self, file: BinaryIO, written: bytes) -> None:
        """All of it, or none."""
        left = memoryview(written)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError:
            file.truncate(self._size)
            raise
        self._size += len(written)

    def _drop_oldest(self) -> None:
        sizes = [(one, one.stat().st_size) for one in files(self._path)]
        total = sum(size for _, size in sizes)
        for one, size in sizes:
            if total <= self._limits.kept:
                return
            one.unlink()
            total -= size


def files(path: Path) -> list[Path]:
    """The files of a recording, in order: those of a directory, or the one file."""
    if path.is_dir():
        return sorted((one for one in path.glob(f"*{SUFFIX}") if one.stem.isdecimal()), key=_number)
    return [path]


def _number(file: Path) -> int:
    return int(file.stem)
