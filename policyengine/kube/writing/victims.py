"""Deletes the victims of preemption, and says what became of each.

First the condition DisruptionTarget is set, so that whoever owns the victim sees why it goes, then it is deleted. Both
requests carry the UID: a new pod under the victim's name is left alone, and a request that lands late does no harm.
The eviction API is not used: it would refuse what DefaultPreemption may choose (a disruption budget it has to break).

Rights needed: `patch` on pods/status and `delete` on pods.
"""

from __future__ import annotations

from collections.abc import Callable

from policyengine.clock import Clock
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.writing.events import second_time
from policyengine.kube.writing.workers import Workers
from policyengine.scheduler.actions import DeleteVictim
from policyengine.scheduler.messages import VictimDeleted, VictimNotDeleted

Outcome = VictimDeleted | VictimNotDeleted

_GONE = frozenset({404, 409})
"""Not found, or the name has another UID now."""


class Evictor(Workers[DeleteVictim, Outcome]):
    """Takes `DeleteVictim` actions; `answer` gets one outcome for each, in whatever order they come."""

    def __init__(self, client: Client, clock: Clock, answer: Callable[[Outcome], None], *, workers: int = 16) -> None:
        super().__init__(answer, workers)
        self._client = client
        self._clock = clock

    async def _do(self, asked: DeleteVictim) -> Outcome:
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
