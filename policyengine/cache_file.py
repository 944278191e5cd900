"""Keeps what takes long to work out in a file of ours.

What such a file holds may be a pickle: whoever writes it runs code here. So it is read only if this user or root owns
it and nobody else may write to it. It begins with a digest of what it was made from and of what it holds. It is written
whole and then renamed, so that no process sees half of one; where that cannot be, it is done without.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path


def read(path: Path, made_from: str) -> bytes | None:
    """What the file holds, if that was made from the same; else None."""
    with suppress(OSError), path.open("rb") as file:
        first, _, content = file.read().partition(b"\n")
        if _is_own(os.fstat(file.fileno())) and first == _digest(made_from, content):
            return content
    return None


def write(path: Path, made_from: str, content: bytes) -> None:
    """Keep it, if that can be."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as written:
            written.write(_digest(made_from, content) + b"\n" + content)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()


def _digest(made_from: str, content: bytes) -> bytes:
    return sha256(made_from.encode() + content).hexdigest().encode()


def _is_own(found: os.stat_result) -> bool:
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    is_private = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(found.st_mode) and found.st_uid in (0, user) and is_private
