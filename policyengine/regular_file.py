"""Reads a file that a user names, a regular one of bounded size; and replaces one.

A pipe without a writer would hang, a device might never end. Both are refused before they are opened. A pipe that the
shell opened (`<(kubectl get …)`, `/dev/stdin`) has a writer and is read.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_OPENED_BY_THE_SHELL = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_OTHERS = ((stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))
_CHUNK = 1 << 20


def read(path: str | Path, most: int) -> bytes:
    """What the file holds: `most` bytes at most.

    Raises:
        OSError: there is no such file, it is none, is larger, or cannot be read; `strerror` says which.
    """
    try:
        found = Path(path).stat()
        if not str(path).startswith(_OPENED_BY_THE_SHELL):
            for is_kind, kind in _OTHERS:
                if is_kind(found.st_mode):
                    raise OSError(errno.EINVAL, f"it is a {kind}; name a file")
        if found.st_size > most:
            raise _too_large(most)
        with Path(path).open("rb") as file:
            return read_stream(file, most)
    except ValueError:  # a NUL, or half a character, in the name
        raise OSError(errno.EINVAL, "it is no file name") from None


def read_stream(stream: BinaryIO, most: int) -> bytes:
    """All of a stream: `most` bytes at most. Raises OSError."""
    read = bytearray()
    while chunk := stream.read(min(_CHUNK, most + 1 - len(read))):
        read += chunk
    if len(read) > most:
        raise _too_large(most)
    return bytes(read)


def replace(path: Path, content: bytes) -> None:
    """Have the file hold something else, whole: where the disk is full, or the process ends meanwhile, it stays as it
    was. A link to it stays one; rights and, where that may be, owners are kept.

    Raises OSError, also for a file that may not be written to.
    """
    place = Path(os.path.realpath(path))
    draft = place.with_name(f".policyengine-{os.getpid()}")
    with place.open("r+b") as old:
        found = os.fstat(old.fileno())
    try:
        with draft.open("xb") as file:
            file.write(content)
        with suppress(OSError):
            os.chown(draft, found.st_uid, found.st_gid)
        draft.chmod(stat.S_IMODE(found.st_mode))
        draft.replace(place)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise


def is_folder(path: Path) -> bool:
    """Whether there is a folder of the name; False too where we may not look, or the name is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """The same of a regular file."""
    try:
        return path.is_file()
    except OSError:
        return False


def _too_large(most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")


def reason(error: OSError) -> str:
    """Why a file cannot be had, as the end of a sentence."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
