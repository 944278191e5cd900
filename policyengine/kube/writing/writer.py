"""Sends what the core decided: each action becomes a request, and its outcome a message back.

Bindings go first; events and conditions wait behind them (`request_queue`). If too many bindings, questions to
extenders or background writes are under way there is no room (`has_room`), and no cycle runs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any

from policyengine.clock import Clock
from policyengine.cluster.kinds import BY_KIND, PODS
from policyengine.cluster.objects import ObjectError, decode, format_time
from policyengine.cluster.pod_objects import Pod
from policyengine.framework.reservation import ObjectPatch
from policyengine.kube.extenders.asker import ExtenderAsker
from policyengine.kube.extenders.http_extender import HttpExtender
from policyengine.kube.http.client import STRATEGIC_MERGE_PATCH, ApiError, Client, ConnectionFailed
from policyengine.kube.leaders_transport import NotLeading
from policyengine.kube.watching.informers import Informers
from policyengine.kube.watching.server_versions import ServerHistory
from policyengine.kube.watching.store import Malformed, Store, identity, number
from policyengine.kube.writing.bindings import BindingRights, read_node_pods
from policyengine.kube.writing.pod_events import ConditionWriter, EventRecorder, conditions
from policyengine.kube.writing.request_queue import RequestQueue
from policyengine.scheduler import actions
from policyengine.scheduler.messages import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BindUnknown,
    Message,
    NodePodsRead,
    ObjectPatched,
    ObjectPatchFailed,
    PodDeleted,
    PodRead,
    ReadNodePodsFailed,
    ReadPodFailed,
    VictimDeleted,
    VictimNotDeleted,
)

BINDINGS = 512
"""Bindings that are not answered, above which no cycle runs."""
WRITES = 96
"""Requests under way at once: half of the changing requests that an API server of default flags serves at a time (200,
`--max-mutating-requests-inflight`), so that one scheduler leaves as much to all others."""
QUESTIONS, QUESTIONS_AT_ONCE = 256, 32
"""Pods that extenders are to be asked about, above which no cycle runs; and those they are asked about at once."""
FLUSH_DEADLINE = 10.0
"""Seconds for what waits at the end."""

logger = logging.getLogger("policyengine.kube.runner")
"""By this name users know the lines of their policies."""


class Writer:
    """Takes actions in the order the core decided them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        answer: Callable[[Message], None],
        *,
        informers: Informers,
        may_bind: Callable[[str], bool],
        leads: Callable[[], bool],
        host: str,
        extenders: Sequence[HttpExtender],
    ) -> None:
        """`answer` takes the outcomes; `may_bind` says whether a `Bind` still stands, by the pod's UID."""
        self._client = client
        self._clock = clock
        self._answer = answer
        self._may_bind = may_bind
        self._leads = leads
        self._pods, self._history = informers.pods.store, informers.history
        self._extenders = ExtenderAsker(extenders, client, informers.nodes.store, self._pods)
        self.queue = RequestQueue(
            clock, random, name="writes", workers=WRITES, limiter=client.limiter, on_problem=logger.warning
        )
        self._questions = RequestQueue(clock, random, name="extender_questions", workers=QUESTIONS_AT_ONCE)
        self.events = EventRecorder(client, clock, self.queue, host=host, on_problem=logger.warning)
        self._conditions = ConditionWriter(client, clock, self.queue, self._pods, self._history)
        self.binding_rights = BindingRights(clock)
        self._under_way: Counter[str] = Counter()
        """Requests that are not answered yet, by what they do."""

    @property
    def queues(self) -> list[RequestQueue]:
        """Everything that requests wait in."""
        return [self.queue, self._questions]

    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What is to run until cancelled."""
        return [self.queue.run(), self._questions.run()]

    def dispatch(self, action: actions.Action) -> None:
        """Have it done soon."""
        match action:
            case actions.Bind():
                self._send("bind", partial(self._bind, action))
                if logger.isEnabledFor(logging.DEBUG):
                    logger.debug("binding", extra=_about(action))
            case actions.RecordEvent():
                self.events.record(action)
                if logger.isEnabledFor(logging.DEBUG):
                    pod = f"{action.namespace}/{action.name}"
                    logger.debug("%s: %s", action.reason, action.note, extra={"pod": pod})
            case actions.PatchPodCondition():
                self._conditions.write(action)
            case actions.DeleteVictim():
                self._send("delete", partial(delete_victim, self._client, self._clock, action))
            case actions.PatchObject():
                self._send("patch", partial(patch_object, self._client, action))
            case actions.ReadPod():
                self._send("read", partial(read_pod, self._client, self._pods, self._history, action))
            case actions.ReadNodePods():
                self._send("verify", partial(read_node_pods, self._client, self._pods, action))
            case actions.AskExtenders() | actions.AskAboutVictims():
                self._send("ask", partial(self._extenders.ask, action), self._questions)
            case actions.Log():
                logger.info("%s: %s", action.point, action.message, extra=_about(action))

    def _send(self, what: str, request: Callable[[], Awaitable[Message]], queue: RequestQueue | None = None) -> None:
        """Have the request made in its turn, and its outcome answered."""
        self._under_way[what] += 1

        async def send() -> None:
            since = self._history.generation
            outcome = await request()
            self._under_way[what] -= 1
            self._answer(outcome if since == self._history.generation else _of_another_generation(outcome))

        (queue or self.queue).send(send)

    @property
    def bindings(self) -> int:
        """Bindings sent, or to be sent, and not answered."""
        return self._under_way["bind"]

    @property
    def outstanding(self) -> int:
        """Requests whose outcome is awaited at the end."""
        return sum(self._under_way[what] for what in ("bind", "delete", "patch", "verify"))

    @property
    def has_room(self) -> bool:
        """Whether what a few more cycles decide can be taken."""
        return self.bindings < BINDINGS and self._under_way["ask"] < QUESTIONS and self.queue.has_room

    async def flush(self) -> None:
        """Write the events and conditions that wait, if there is time."""
        left = await self.queue.flush(FLUSH_DEADLINE)
        if left:
            logger.warning("%d events and conditions were not written before the end", left)

    async def _bind(self, action: actions.Bind) -> BindOutcome:
        """Bind a pod, once the condition of it that is under way has been written, and none is to follow."""
        under_way = self._conditions.settle(action.uid)
        if under_way is not None:
            await under_way
        # Asked at the last moment: the node may have gone, or been tainted, since the decision.
        if not self._may_bind(action.uid):
            return BindFailed(action.uid, BindFailure.WITHDRAWN, "the decision no longer stands")
        if action.extender is not None:
            if not self._leads():
                return BindFailed(action.uid, BindFailure.OVERLOADED, str(NotLeading()))
            outcome = await self._extenders.bind(action)
            if outcome is not None:
                return outcome
        bound = await bind(self._client, action)
        self.binding_rights.note(action.namespace, bound)
        return bound


def _about(action: actions.Bind | actions.Log) -> dict[str, str]:
    """The fields of a log line."""
    pod = f"{action.namespace}/{action.name}"
    return {"pod": pod, "node": action.node, "hash": action.policy_hash[:12]}


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


async def bind(client: Client, asked: actions.Bind) -> BindOutcome:
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


async def patch_object(client: Client, asked: actions.PatchObject) -> Message:
    """Change a volume or claim that a pod waits for before it is bound; or make one, or delete it.

    A patch carries the UID of the object it was decided for and, unless it is strategic, the version: should it land
    late, it changes nothing that has been decided since.
    """
    patch = asked.patch
    name = "" if patch.verb == "POST" else patch.name
    kind = PODS if patch.kind == PODS.kind else client.served(BY_KIND[patch.kind])
    path = kind.path(patch.namespace, name, patch.subresource)
    try:
        content = STRATEGIC_MERGE_PATCH if patch.strategic else ""
        answer = await client.call(patch.verb, path, _sent(patch), content=content)
        return ObjectPatched(asked, identity(answer).resource_version)
    except ApiError as error:
        failure = BindFailure.OVERLOADED if error.status in _OPEN else _FAILURES.get(error.status, BindFailure.REFUSED)
        return ObjectPatchFailed(asked, failure, error.message, error.retry_after)
    except Malformed as error:
        return ObjectPatchFailed(asked, BindFailure.REFUSED, f"the answer of `{path}`: {error}")
    except ConnectionFailed as error:
        return ObjectPatchFailed(asked, BindFailure.OVERLOADED, str(error))


def _sent(patch: ObjectPatch) -> dict[str, object]:
    """What is sent: the patch with what it may be made on, the object, or what it may be deleted as."""
    known = {"uid": patch.uid, "resourceVersion": "" if patch.strategic else patch.resource_version}
    known = {name: value for name, value in known.items() if value}
    if patch.verb == "DELETE":
        return {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": known}
    given = patch.patch.get("metadata")
    return {**patch.patch, "metadata": {**(given if isinstance(given, dict) else {}), **known}}


async def delete_victim(client: Client, clock: Clock, asked: actions.DeleteVictim) -> Message:
    """Delete a victim of preemption, or what gives way, after it has the condition DisruptionTarget, so that its owner
    sees why it goes.

    Both requests carry the UID, and the version where one is given: a new pod under the victim's name is left alone,
    and a request that lands late does no harm. The eviction API is not used: it would refuse what DefaultPreemption may
    choose (a disruption budget it has to break). Rights needed: `patch` on pods/status and `delete` on pods.
    """
    since = format_time(clock.now())
    status = conditions("DisruptionTarget", "True", asked.reason, asked.message, since, asked.observed_generation)
    only_if = {"uid": asked.uid}
    try:
        pod = await client.patch_pod_status(asked.namespace, asked.name, status, asked.uid, asked.resource_version)
        if asked.resource_version:
            only_if["resourceVersion"] = identity(pod).resource_version
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": only_if}
        await client.call("DELETE", PODS.path(asked.namespace, asked.name), options)
    except ApiError as error:
        if error.status in _GONE:
            return VictimDeleted(asked, was_there=False)
        return VictimNotDeleted(asked, error.message, error.retry_after)
    except (ConnectionFailed, Malformed) as error:
        return VictimNotDeleted(asked, str(error))
    return VictimDeleted(asked)


def _of_another_generation(outcome: Message) -> Message:
    """What was asked of a server that has gone back since tells nothing of what is."""
    why = "the API server has gone back to an older copy since"
    match outcome:
        case BindSucceeded():
            return BindUnknown(outcome.uid, why)
        case PodRead() | PodDeleted():
            return ReadPodFailed(outcome.uid if isinstance(outcome, PodDeleted) else outcome.asked.uid)
        case NodePodsRead():
            return ReadNodePodsFailed(outcome.asked)
        case ObjectPatched():
            return ObjectPatchFailed(outcome.asked, BindFailure.OVERLOADED, why)
    return outcome


async def read_pod(client: Client, seen: Store[Pod], history: ServerHistory, asked: actions.ReadPod) -> Message:
    """Read a pod whose binding's outcome is open; `seen`: the pods as the watch tells of them."""
    since, before = seen.generation, seen.seen(asked.namespace, asked.name)
    try:
        pod = decode(Pod, await client.call("GET", PODS.path(asked.namespace, asked.name)))
    except ApiError as error:
        if error.status == 404:
            return PodDeleted(asked.namespace, asked.name, asked.uid)
        return ReadPodFailed(asked.uid, error.retry_after)
    except (ConnectionFailed, ObjectError):
        return ReadPodFailed(asked.uid)
    # The watch may have told meanwhile that the pod is gone: an answer may be older than that.
    meta = pod.metadata
    history.compare(f"pod `{asked.namespace}/{asked.name}`", before, meta, since)
    is_known = seen.uid(meta.namespace, meta.name) == meta.uid
    if meta.uid != asked.uid or (not is_known and number(meta.resource_version) <= number(seen.version)):
        return PodDeleted(asked.namespace, asked.name, asked.uid)
    return PodRead(asked, pod)
