"""Posts bindings, many at a time, and says what became of each.

An answer that leaves the outcome open (a lost connection, a time-out, any 500: etcd may have written before it failed)
is `BindUnknown`, never a failure: the core keeps the reservation and reads the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.writing.workers import Workers
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import BindFailed, BindFailure, BindSucceeded, BindUnknown

TOGETHER = 16
"""Bindings sent at once: those of the cycles between two turns of the event loop."""
Outcome = BindSucceeded | BindFailed | BindUnknown

_FAILURES = {
    409: BindFailure.CONFLICT,
    404: BindFailure.NOT_FOUND,
    429: BindFailure.OVERLOADED,
    503: BindFailure.OVERLOADED,
}
_OPEN = frozenset({408, 500, 502, 504})


class Binder(Workers[Bind, Outcome]):
    """Takes `Bind` actions; `answer` gets one outcome for each, in whatever order they come."""

    def __init__(
        self,
        client: Client,
        answer: Callable[[Outcome], None],
        *,
        settle: Callable[[str], Awaitable[object] | None],
        may_bind: Callable[[str], bool],
        elsewhere: Callable[[Bind], Awaitable[Outcome | None]] | None = None,
        workers: int = 96,
    ) -> None:
        """`settle`: what has to end before a pod is bound, None for nothing. `elsewhere` makes the bindings that an
        extender is to make; None where it leaves one to the API server."""
        super().__init__(answer, workers, TOGETHER)
        self._elsewhere = elsewhere
        self._client = client
        self._settle = settle
        self._may_bind = may_bind

    async def _do_all(self, binds: Sequence[Bind]) -> None:
        elsewhere = [] if self._elsewhere is None else [bind for bind in binds if bind.extender is not None]
        if not elsewhere:
            await self._post(binds)
            return
        here = [bind for bind in binds if bind.extender is None]
        await asyncio.gather(self._post(here), *(super(Binder, self)._do_all([bind]) for bind in elsewhere))

    async def _do(self, bind: Bind) -> Outcome:
        """One binding that an extender is to make."""
        assert self._elsewhere is not None
        await self._settled([bind])
        if not self._may_bind(bind.uid):
            return _withdrawn(bind)
        outcome = await self._elsewhere(bind)
        if outcome is not None:
            return outcome
        found: list[Outcome] = []
        await self._client.bind_all([bind], lambda at, refusal: found.append(_outcome(bind, refusal)))
        return found[0]

    async def _settled(self, binds: Sequence[Bind]) -> None:
        for bind in binds:
            under_way = self._settle(bind.uid)
            if under_way is not None:
                await under_way

    async def _post(self, binds: Sequence[Bind]) -> None:
        await self._settled(binds)
        # Asked at the last moment: the node may have gone, or been tainted, since the decision.
        due = [bind for bind in binds if self._may_bind(bind.uid)]
        for bind in binds if len(due) < len(binds) else ():
            if bind not in due:
                self._told(_withdrawn(bind))
        if due:
            await self._client.bind_all(due, lambda at, refusal: self._told(_outcome(due[at], refusal)))


def _withdrawn(bind: Bind) -> BindFailed:
    return BindFailed(bind.uid, BindFailure.WITHDRAWN, "the decision no longer stands")


def _outcome(bind: Bind, refusal: ApiError | ConnectionFailed | None) -> Outcome:
    if refusal is None:
        return BindSucceeded(bind.uid)
    if isinstance(refusal, ApiError):
        return outcome_of(bind.uid, refusal)
    if refusal.sent:
        return BindUnknown(bind.uid, str(refusal))
    return BindFailed(bind.uid, BindFailure.OVERLOADED, str(refusal))


def outcome_of(uid: str, error: ApiError) -> BindFailed | BindUnknown:
    """What a refusal means for the pod's reservation."""
    if error.status in _OPEN:
        return BindUnknown(uid, error.message)
    failure = _FAILURES.get(error.status, BindFailure.REFUSED)
    return BindFailed(uid, failure, error.message, error.retry_after)
