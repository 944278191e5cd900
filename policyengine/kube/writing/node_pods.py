"""The pods of one node, read where a binding is to be verified."""

from __future__ import annotations

from contextlib import suppress

from policyengine.cluster.objects import ObjectError, decode
from policyengine.cluster.pod_objects import Pod
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.watching.store import Store, number
from policyengine.scheduler.actions import ReadNodePods
from policyengine.scheduler.messages import NodePodsRead, ReadNodePodsFailed


async def read_node_pods(client: Client, seen: Store[Pod], asked: ReadNodePods) -> NodePodsRead | ReadNodePodsFailed:
    """Read them as they are now; one that cannot be read is left out. `seen`: as the watch tells of them, which
    may have told that one is gone while the answer was on its way."""
    try:
        raws = await client.list_node_pods(asked.node)
    except ApiError as error:
        return ReadNodePodsFailed(asked, error.retry_after)
    except ConnectionFailed:
        return ReadNodePodsFailed(asked)
    pods: list[Pod] = []
    for raw in raws:
        with suppress(ObjectError):  # the watch has reported it
            pod = decode(Pod, raw)
            meta = pod.metadata
            is_known = seen.uid(meta.namespace, meta.name) == meta.uid
            if is_known or number(meta.resource_version) > number(seen.version):
                pods.append(pod)
    return NodePodsRead(asked, tuple(pods))
