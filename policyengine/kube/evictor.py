"""Deletes the victims of preemption, and says what became of each.

First the condition DisruptionTarget is set, so that whoever owns the victim sees why it goes, then it is deleted. Both
requests carry the UID: a new pod under the victim's name is left alone, and a request that lands late does no harm.
The eviction API is not used: it would refuse what DefaultPreemption may choose (a disruption budget it has to break).

Rights needed: `patch` on pods/status and `delete` on pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from policyengine.clock import Clock
from policyengine.kube.client import ApiError, Client
from policyengine.kube.events import second_time
from policyengine.kube.transport import ConnectionFailed
from policyengine.scheduler.messages import DeleteVictim, VictimDeleted, VictimNotDeleted

Outcome = VictimDeleted | VictimNotDeleted

_GONE = frozenset({404, 409})
"""Not found, or the name has another UID now."""


class Evictor:
    """Takes `DeleteVictim` actions; `answer` gets one outcome for each, in whatever order they come."""

    def __init__(self, client: Client, clock: Clock, answer: Callable[[Outcome], None], *, workers: int = 16) -> None:
        self._client = client
        self._clock = clock
        self._answer = answer
        self._workers = workers
        self._queue: asyncio.Queue[DeleteVictim] = asyncio.Queue()
        self.outstanding = 0
        """Victims taken and not answered for yet."""

    def post(self, asked: DeleteVictim) -> None:
        """Delete the victim soon."""
        self.outstanding += 1
        self._queue.put_nowait(asked)

    async def run(self) -> None:
        """Delete victims until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            asked = await self._queue.get()
            outcome = await self._delete(asked)
            self.outstanding -= 1
            self._answer(outcome)

    async def _delete(self, asked: DeleteVictim) -> Outcome:
        try:
            await self._client.patch_pod_status(asked.namespace, asked.name, self._status(asked), asked.uid)
            await self._client.delete_pod(asked.namespace, asked.name, asked.uid)
        except ApiError as error:
            if error.status in _GONE:
                return VictimDeleted(asked, was_there=False)
            return VictimNotDeleted(asked, error.message, error.retry_after)
        except ConnectionFailed as error:
            return VictimNotDeleted(asked, str(error))
        return VictimDeleted(asked)

    def _status(self, asked: DeleteVictim) -> dict[str, object]:
        condition: dict[str, object] = {
            "lastProbeTime": None,
            "lastTransitionTime": second_time(self._clock.now()),
            "message": asked.message,
            "reason": "PreemptionByScheduler",
            "status": "True",
            "type": "DisruptionTarget",
        }
        if asked.observed_generation:
            condition["observedGeneration"] = asked.observed_generation
        return {"conditions": [condition]}
