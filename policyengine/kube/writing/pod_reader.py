"""Reads pods whose binding's outcome is open, and says what is true of each."""

from __future__ import annotations

from collections.abc import Callable

from policyengine.cluster import objects
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.store import number
from policyengine.kube.writing.workers import Workers
from policyengine.scheduler.actions import ReadPod
from policyengine.scheduler.messages import PodDeleted, PodRead, ReadPodFailed

Outcome = PodRead | PodDeleted | ReadPodFailed


class PodReader(Workers[ReadPod, Outcome]):
    """Takes `ReadPod` actions; `answer` gets one outcome for each, in whatever order they come."""

    def __init__(
        self, client: Client, seen: Reflector[objects.Pod], answer: Callable[[Outcome], None], *, workers: int = 128
    ) -> None:
        """`seen`: the pods as the watch tells of them."""
        super().__init__(answer, workers)
        self._client = client
        self._seen = seen

    async def _do(self, asked: ReadPod) -> Outcome:
        try:
            pod = objects.decode(objects.Pod, await self._client.read_pod(asked.namespace, asked.name))
        except ApiError as error:
            if error.status == 404:
                return PodDeleted(asked.namespace, asked.name, asked.uid)
            return ReadPodFailed(asked.uid, error.retry_after)
        except (ConnectionFailed, objects.ObjectError):
            return ReadPodFailed(asked.uid)
        return self._truth(asked, pod)

    def _truth(self, asked: ReadPod, pod: objects.Pod) -> PodRead | PodDeleted:
        """The pod as read, unless the watch told meanwhile that it is gone: an answer may be older than that."""
        meta = pod.metadata
        seen = self._seen.knows(meta.namespace, meta.name, meta.uid)
        if meta.uid != asked.uid or (not seen and number(meta.resource_version) <= self._seen.version):
            return PodDeleted(asked.namespace, asked.name, asked.uid)
        return PodRead(asked, pod)
