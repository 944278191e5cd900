"""Every write of an embedded API server, told as it happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tests.faulty_server.server import FaultyServer, Write


class _ToldWrites(deque[Write]):
    """The writes, each told as it is appended."""

    def __init__(self, kept: deque[Write], tell: Callable[[Write], None]) -> None:
        super().__init__(kept, kept.maxlen)
        self._tell = tell

    def append(self, write: Write) -> None:
        super().append(write)
        self._tell(write)


def tell_writes(api: FaultyServer, tell: Callable[[Write], None]) -> None:
    api.writes = _ToldWrites(api.writes, tell)
