"""The embedded API server with faults that can be injected, a wall clock that can be off, and a log of all writes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from policyengine.clock import Clock
from policyengine.simulator.api_server.handler import ApiServer, error_response
from policyengine.simulator.api_server.http_requests import ADMIN, Request, RequestInfo, Response, parse_path
from policyengine.simulator.api_server.statuses import ApiError
from policyengine.simulator.api_server.storage import Object, decode
from policyengine.simulator.api_server.writing import rest_storage
from policyengine.simulator.api_server.writing.call import Call, Caller
from tests.faulty_server.effects import Drop
from tests.faulty_server.rules import Faults

LIMIT = 200_000
"""Writes that the log keeps."""


class OffsetClock:
    """Another clock, `offset` seconds ahead of it (behind, where negative)."""

    def __init__(self, inner: Clock, offset: float = 0.0) -> None:
        self._inner = inner
        self.offset = offset

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch, off by `offset`."""
        return self._inner.now() + self.offset

    def monotonic(self) -> float:
        """Seconds on the inner clock."""
        return self._inner.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await self._inner.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Write:
    """One write as it took effect; the objects are without `kind` and `apiVersion`."""

    verb: str
    kind: str
    namespace: str
    name: str
    subresource: str
    user: str
    user_agent: str
    resource_version: int
    time: float
    before_raw: bytes | None
    after_raw: bytes | None

    @property
    def key(self) -> str:
        """`namespace/name`, or `name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def before(self) -> Object | None:
        """The object before; None for a create."""
        return None if self.before_raw is None else decode(self.before_raw)

    @property
    def after(self) -> Object | None:
        """The object after; None for a removal."""
        return None if self.after_raw is None else decode(self.after_raw)


class FaultyServer(ApiServer):
    """`faults` are its rules, `clock.offset` puts its wall clock ahead, `writes` is the log."""

    def __init__(self, clock: Clock, seed: int = 0, **how: Any) -> None:
        self.writes: deque[Write] = deque(maxlen=LIMIT)
        self.faults = Faults(clock, seed, self.perform, lambda: self.store.revision)
        super().__init__(OffsetClock(clock), seed, **how)

    @property
    def is_slow(self) -> bool:  # type: ignore[override]
        return bool(self.faults.rules)

    def after_write(self, write: rest_storage.Write) -> None:
        entry, before, who = write.entry, write.before, write.caller
        self.writes.append(
            Write(
                write.verb,
                write.kind.kind,
                entry.namespace,
                entry.name,
                write.subresource,
                who.user.name,
                who.user_agent,
                entry.revision,
                self.clock.now(),
                before.raw if before else None,
                None if write.obj is None else entry.raw,
            )
        )
        super().after_write(write)

    def restart(self, seconds: float = 0.0, forget: bool = True) -> None:
        """As if the process ended: watches break off, nothing is answered for `seconds`, caches begin anew."""
        if seconds > 0:
            self.faults.add(Drop(reached=False), times=None, seconds=seconds)
        self.end_watches()
        if forget:
            self.store.compact()

    async def perform(self, request: Request) -> Response:
        """A request as administrator, without injected faults."""
        info = parse_path(request.method, request.path, request.query)
        try:
            return await self.route(request, info, Caller(ADMIN, request.user_agent))
        except ApiError as error:
            return error_response(error)

    async def answer(self, request: Request, info: RequestInfo, caller: Caller, seconds: float | None) -> Response:
        effects = self.faults.find(info, request.user_agent, caller.user.name)
        if not effects:
            return await super().answer(request, info, caller, seconds)
        act = self.faults.around(effects, request, lambda: self.route(request, info, caller))
        return await self.in_time(act, seconds)

    async def watch(self, call: Call) -> Response:
        response = await super().watch(call)
        assert not isinstance(response.body, bytes)
        # Always: a rule that is added later acts on the watches that are open by then.
        response.body = self.faults.stream(call.info, call.request.user_agent, response.body, call.caller.user.name)
        return response
