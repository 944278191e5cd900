"""What pages are rendered from: a scheduler's state at a moment, and who says so; and long lists, a part
at a time."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from policyengine.clock import Clock
from policyengine.diagnosis.dump import DumpedObject
from policyengine.diagnosis.forecast import Fate, played
from policyengine.framework.profile import Profile
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


class Source(ABC):
    """Where moments come from."""

    is_live = False
    """Whether it changes by itself."""
    span: tuple[float, float] | None = None
    """The first and last moment that can be asked for, in seconds since the epoch; None where there is only one."""

    def __init__(self, title: str) -> None:
        """`title`: what is looked at, in a few words."""
        self.title = title

    @abstractmethod
    def moment(self, at: float | None = None) -> AbstractAsyncContextManager[Moment]:
        """The state at that moment, or at the last one. Raises `NotShown`."""


class Present(Source):
    """Nothing but the present: the moment that `read` gives."""

    def __init__(self, title: str, read: Callable[[], Moment], is_live: bool = False) -> None:
        super().__init__(title)
        self.is_live = is_live
        self._read = read

    @asynccontextmanager
    async def moment(self, at: float | None = None) -> AsyncIterator[Moment]:
        """As it is."""
        yield self._read()


def of_scheduler(scheduler: Scheduler, clock: Clock) -> Source:
    """The scheduler of this process."""
    host = socket.gethostname()

    def read() -> Moment:
        elector = scheduler.elector
        who, leads = (host, True) if elector is None else (elector.identity, elector.holds())
        return Moment(scheduler.state, clock.now(), who, leads, scheduler.reloader.standings)

    return Present(f"scheduler on {host}", read, is_live=True)


def dumped(
    where: str, objects: Sequence[DumpedObject], profiles: Sequence[Profile], notes: Sequence[str], now: float
) -> Source:
    """The cluster once the scheduler has tried all pods that wait in it (`forecast`)."""
    told, state = played(objects, profiles, now)
    placed = sum(one.what is Fate.BOUND for one in told.pods)
    said = [*notes]
    if told.pods:
        said.append(
            f"this is a file, in which {len(told.pods):,} pods wait: shown is what the scheduler would make of them; "
            f"{placed:,} of them get a node"
        )
    if told.evicted:
        said.append(f"{len(told.evicted):,} pods had to go for others")
    if not told.is_complete:
        said.append("the bound on the work was reached: not every pod was tried")
    moment = Moment(state, now + told.seconds, where, None, notes=tuple(said))
    return Present(where, lambda: moment)


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
