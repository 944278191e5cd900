"""What pages are rendered from: a scheduler's state at a moment, and who says so; and long lists, a part
at a time."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from policyengine.clock import Clock
from policyengine.kube.policies.precedence import SourceKey, Standing
from policyengine.kube.scheduling import Scheduler
from policyengine.scheduler.state import SchedulerState
from policyengine.server.pages.covering import Covered


@dataclass(frozen=True, slots=True)
class Moment:
    """One state of the scheduler. It holds until the block that gave it ends."""

    state: SchedulerState
    now: float
    """Seconds since the epoch."""
    who: str
    """Who says this: a replica, a file."""
    leads: bool | None = None
    """Whether that replica decides; None where nobody does."""
    standings: Mapping[SourceKey, Standing] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What is to be known of all that is shown: a sentence each."""
    charts: Sequence[Mapping[str, Any]] = ()
    """Of all the time there is; see `recorded.charts`."""


class NotShown(Exception):
    """What was asked for cannot be shown: an HTTP status, and a sentence that says why and what to do."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody asks a page for."""

    path: Mapping[str, str]
    """The parts of the path that are names."""
    query: Mapping[str, str]
    monotonic: Callable[[], float]
    """Seconds on a clock that never goes back, to measure by."""
    covered: Covered | None = None
    """What the tests of the policy that is asked about see of it, where that is asked for."""


class Source(Protocol):
    """Where moments come from."""

    @property
    def title(self) -> str:
        """What is looked at, in a few words."""

    @property
    def is_live(self) -> bool:
        """Whether it changes by itself."""

    @property
    def span(self) -> tuple[float, float] | None:
        """The first and last moment that can be asked for, in seconds since the epoch; None where there is only one."""

    def moment(self, at: float | None = None) -> AbstractAsyncContextManager[Moment]:
        """The state at that moment, or at the last one. Raises `NotShown`."""


class LiveSource:
    """The scheduler of this process."""

    is_live = True
    span = None

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock

    @property
    def title(self) -> str:
        """Its host's name."""
        return f"scheduler on {socket.gethostname()}"

    @asynccontextmanager
    async def moment(self, at: float | None = None) -> AsyncIterator[Moment]:
        """As it is."""
        elector = self._scheduler.elector
        yield Moment(
            self._scheduler.state,
            self._clock.now(),
            socket.gethostname() if elector is None else elector.identity,
            elector is None or elector.holds(),
            self._scheduler.reloader.standings,
        )


class StillSource:
    """A state that does not change."""

    is_live = False
    span = None

    def __init__(self, title: str, moment: Moment) -> None:
        self.title = title
        self._moment = moment

    @asynccontextmanager
    async def moment(self, at: float | None = None) -> AsyncIterator[Moment]:
        """The only one."""
        yield self._moment


T = TypeVar("T")
SHOWN: Final = 100
"""Rows at once."""


def part(rows: Sequence[T], asked: Asked, keys: Mapping[str, Callable[[T], Any]]) -> dict[str, Any]:
    """`{rows, page, pages, count}`: the part `page` of the rows, sorted by the key that `sort` names; with `-` before
    it the other way round. In the order given where it names none."""
    by = asked.query.get("sort", "")
    key = keys.get(by.removeprefix("-"))
    if key is not None:
        rows = sorted(rows, key=key, reverse=by.startswith("-"))
    pages = max(1, -(-len(rows) // SHOWN))
    text = asked.query.get("page", "1")
    page = min(pages, max(1, int(text[:9]))) if text.isdecimal() and text.isascii() else 1
    return {"rows": rows[(page - 1) * SHOWN : page * SHOWN], "page": page, "pages": pages, "count": len(rows)}
