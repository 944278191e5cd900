"""Posts bindings, many at a time, and says what became of each.

An answer that leaves the outcome open (a lost connection, a time-out, any 500: etcd may have written before it failed)
is `BindUnknown`, never a failure: the core keeps the reservation and reads the pod.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from policyengine.kube.client import ApiError, Client
from policyengine.kube.transport import ConnectionFailed
from policyengine.kube.workers import Workers
from policyengine.scheduler.messages import Bind, BindFailed, BindFailure, BindSucceeded, BindUnknown

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
        settle: Callable[[str], Awaitable[None]],
        may_bind: Callable[[str], bool],
        elsewhere: Callable[[Bind], Awaitable[Outcome]] | None = None,
        workers: int = 64,
    ) -> None:
        """`elsewhere` makes the bindings that an extender is to make."""
        super().__init__(answer, workers)
        self._elsewhere = elsewhere
        self._client = client
        self._settle = settle
        self._may_bind = may_bind

    async def _do(self, bind: Bind) -> Outcome:
        await self._settle(bind.uid)
        # Asked at the last moment: the node may have gone, or been tainted, since the decision.
        if not self._may_bind(bind.uid):
            return BindFailed(bind.uid, BindFailure.WITHDRAWN, "the decision no longer stands")
        if bind.extender is not None and self._elsewhere is not None:
            return await self._elsewhere(bind)
        try:
            await self._client.bind(bind.namespace, bind.name, bind.uid, bind.node, bind.annotations)
        except ApiError as error:
            return outcome_of(bind.uid, error)
        except ConnectionFailed as error:
            if error.sent:
                return BindUnknown(bind.uid, str(error))
            return BindFailed(bind.uid, BindFailure.OVERLOADED, str(error))
        return BindSucceeded(bind.uid)


def outcome_of(uid: str, error: ApiError) -> BindFailed | BindUnknown:
    """What a refusal means for the pod's reservation."""
    if error.status in _OPEN:
        return BindUnknown(uid, error.message)
    failure = _FAILURES.get(error.status, BindFailure.REFUSED)
    return BindFailed(uid, failure, error.message, error.retry_after)
