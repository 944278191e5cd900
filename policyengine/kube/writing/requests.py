"""One request for one action of the core, and what its answer means. A refusal and a lost connection are outcomes too.

An answer that leaves a binding open (a lost connection, a time-out, any 500: etcd may have written before it failed) is
`BindUnknown`, never a failure: the core keeps the reservation and has the pod read.
"""

from __future__ import annotations

from policyengine.clock import Clock
from policyengine.cluster import objects
from policyengine.cluster.kinds import BY_KIND
from policyengine.kube.http.client import ApiError, Client
from policyengine.kube.http.transport import ConnectionFailed
from policyengine.kube.watching.reflector import Reflector
from policyengine.kube.watching.store import number
from policyengine.kube.writing.events import second_time
from policyengine.scheduler.actions import Bind, DeleteVictim, PatchObject, ReadPod
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    ObjectPatched,
    ObjectPatchFailed,
    PodDeleted,
    PodRead,
    ReadPodFailed,
    VictimDeleted,
    VictimNotDeleted,
)

BindOutcome = BindSucceeded | BindFailed | BindUnknown

_FAILURES = {
    409: BindFailure.CONFLICT,
    404: BindFailure.NOT_FOUND,
    429: BindFailure.OVERLOADED,
    503: BindFailure.OVERLOADED,
}
_OPEN = frozenset({408, 500, 502, 504})
"""Statuses after which the server may have done what was asked."""
_GONE = frozenset({404, 409})
"""Not found, or the name has another UID now."""


async def bind(client: Client, asked: Bind) -> BindOutcome:
    """Bind a pod."""
    try:
        await client.bind(asked.namespace, asked.name, asked.uid, asked.node, asked.annotations)
    except ApiError as error:
        return bind_outcome(asked.uid, error)
    except ConnectionFailed as error:
        if error.sent:
            return BindUnknown(asked.uid, str(error))
        return BindFailed(asked.uid, BindFailure.OVERLOADED, str(error))
    return BindSucceeded(asked.uid)


def bind_outcome(uid: str, error: ApiError) -> BindFailed | BindUnknown:
    """What a refusal means for the pod's reservation."""
    if error.status in _OPEN:
        return BindUnknown(uid, error.message)
    failure = _FAILURES.get(error.status, BindFailure.REFUSED)
    return BindFailed(uid, failure, error.message, error.retry_after)


async def patch_object(client: Client, asked: PatchObject) -> ObjectPatched | ObjectPatchFailed:
    """Change a volume or claim that a pod waits for before it is bound.

    A patch carries the UID and the version of the object it was decided for: should it land late, it changes nothing
    that has been decided since.
    """
    patch = asked.patch
    given = patch.patch.get("metadata")
    metadata = dict(given) if isinstance(given, dict) else {}
    metadata |= {"uid": patch.uid, "resourceVersion": patch.resource_version}
    path = BY_KIND[patch.kind].path(patch.namespace, patch.name, patch.subresource)
    try:
        return ObjectPatched(asked, await client.patch_object(path, {**patch.patch, "metadata": metadata}))
    except ApiError as error:
        failure = BindFailure.OVERLOADED if error.status in _OPEN else _FAILURES.get(error.status, BindFailure.REFUSED)
        return ObjectPatchFailed(asked, failure, error.message, error.retry_after)
    except ConnectionFailed as error:
        return ObjectPatchFailed(asked, BindFailure.OVERLOADED, str(error))


async def delete_victim(client: Client, clock: Clock, asked: DeleteVictim) -> VictimDeleted | VictimNotDeleted:
    """Delete a victim of preemption, after it has the condition DisruptionTarget, so that its owner sees why it goes.

    Both requests carry the UID: a new pod under the victim's name is left alone, and a request that lands late does no
    harm. The eviction API is not used: it would refuse what DefaultPreemption may choose (a disruption budget it has to
    break). Rights needed: `patch` on pods/status and `delete` on pods.
    """
    condition: dict[str, object] = {
        "lastProbeTime": None,
        "lastTransitionTime": second_time(clock.now()),
        "message": asked.message,
        "reason": "PreemptionByScheduler",
        "status": "True",
        "type": "DisruptionTarget",
    }
    if asked.observed_generation:
        condition["observedGeneration"] = asked.observed_generation
    try:
        await client.patch_pod_status(asked.namespace, asked.name, {"conditions": [condition]}, asked.uid)
        await client.delete_pod(asked.namespace, asked.name, asked.uid)
    except ApiError as error:
        if error.status in _GONE:
            return VictimDeleted(asked, was_there=False)
        return VictimNotDeleted(asked, error.message, error.retry_after)
    except ConnectionFailed as error:
        return VictimNotDeleted(asked, str(error))
    return VictimDeleted(asked)


async def read_pod(
    client: Client, seen: Reflector[objects.Pod], asked: ReadPod
) -> PodRead | PodDeleted | ReadPodFailed:
    """Read a pod whose binding's outcome is open; `seen`: the pods as the watch tells of them."""
    try:
        pod = objects.decode(objects.Pod, await client.read_pod(asked.namespace, asked.name))
    except ApiError as error:
        if error.status == 404:
            return PodDeleted(asked.namespace, asked.name, asked.uid)
        return ReadPodFailed(asked.uid, error.retry_after)
    except (ConnectionFailed, objects.ObjectError):
        return ReadPodFailed(asked.uid)
    # The watch may have told meanwhile that the pod is gone: an answer may be older than that.
    meta = pod.metadata
    is_known = seen.knows(meta.namespace, meta.name, meta.uid)
    if meta.uid != asked.uid or (not is_known and number(meta.resource_version) <= seen.version):
        return PodDeleted(asked.namespace, asked.name, asked.uid)
    return PodRead(asked, pod)
