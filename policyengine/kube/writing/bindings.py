"""What is known beside bindings: the pods of a node where one is to be verified, and where the right to bind is
missing.

The server's answers to bindings tell that the right is missing, and `/readyz` says so. A namespace counts until a
binding in it succeeds, or for `REMEMBERED` after a pod that was refused last has been tried again, at the latest after
the policies' longest backoff: without a refusal then nothing waits for the right any more. Other refusals with 403, of
admission plugins or of a namespace that is being deleted, are about the pod.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from policyengine.clock import Clock
from policyengine.cluster.objects import ObjectError, decode
from policyengine.cluster.pod_objects import Pod
from policyengine.kube.http.client import ApiError, Client, ConnectionFailed
from policyengine.kube.watching.store import Store, number
from policyengine.scheduler.actions import ReadNodePods
from policyengine.scheduler.messages import BindFailed, BindSucceeded, Message, NodePodsRead, ReadNodePodsFailed

logger = logging.getLogger(__name__)

REMEMBERED = 60.0
_MISSING = 'cannot create resource "pods/binding"'
"""What every authorizer's refusal says (apiserver's `responsewriters.Forbidden`)."""


class BindingRights:
    """The namespaces in which this replica was not allowed to bind."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: dict[str, tuple[float, str]] = {}
        """Namespace -> when it was refused last, on the monotonic clock, and the server's words."""

    def note(self, namespace: str, outcome: Message) -> None:
        """Take the outcome of a binding into account."""
        if isinstance(outcome, BindSucceeded):
            if self._refused.pop(namespace, None):
                logger.info("pods of namespace `%s` may be bound again", namespace)
        elif isinstance(outcome, BindFailed) and _MISSING in outcome.message:
            if namespace not in self._refused:
                logger.warning("pods of namespace `%s` may not be bound: %s", namespace, outcome.message)
            self._refused[namespace] = self._clock.monotonic(), outcome.message

    def problem(self, longest_backoff: float) -> str:
        """Where pods may not be bound, and the server's words; empty where nothing is known to be missing. Seconds."""
        since = self._clock.monotonic() - REMEMBERED - longest_backoff
        self._refused = {name: refused for name, refused in self._refused.items() if refused[0] >= since}
        if not self._refused:
            return ""
        first, (_, message) = min(self._refused.items())
        others = f" and {len(self._refused) - 1} more" if len(self._refused) > 1 else ""
        return f"pods of namespace `{first}`{others} may not be bound: {message}"


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
