"""Makes the changes to volumes and claims that pods wait for before they are bound, and says what became of each.

Every patch carries the UID and the version of the object it was decided for, so a request whose answer was lost may
be given up: should it land late, it changes nothing that has been decided since.
"""

from __future__ import annotations

from collections.abc import Callable

from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.resources import BY_KIND
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.writing.workers import Workers
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.messages import BindFailure, ObjectPatched, ObjectPatchFailed

Outcome = ObjectPatched | ObjectPatchFailed

_FAILURES = {409: BindFailure.CONFLICT, 404: BindFailure.NOT_FOUND}
_OVERLOADED = frozenset({408, 429, 500, 502, 503, 504})


class ObjectWriter(Workers[PatchObject, Outcome]):
    """Takes `PatchObject` actions; `answer` gets one outcome for each, in whatever order they come."""

    def __init__(self, client: Client, answer: Callable[[Outcome], None], *, workers: int = 16) -> None:
        super().__init__(answer, workers)
        self._client = client

    async def _do(self, asked: PatchObject) -> Outcome:
        patch = asked.patch
        given = patch.patch.get("metadata")
        metadata = dict(given) if isinstance(given, dict) else {}
        metadata |= {"uid": patch.uid, "resourceVersion": patch.resource_version}
        body = {**patch.patch, "metadata": metadata}
        path = BY_KIND[patch.kind].path(patch.namespace, patch.name, patch.subresource)
        try:
            return ObjectPatched(asked, await self._client.patch_object(path, body))
        except ApiError as error:
            overloaded = error.status in _OVERLOADED
            failure = BindFailure.OVERLOADED if overloaded else _FAILURES.get(error.status, BindFailure.REFUSED)
            return ObjectPatchFailed(asked, failure, error.message, error.retry_after)
        except ConnectionFailed as error:
            return ObjectPatchFailed(asked, BindFailure.OVERLOADED, str(error))
