"""The result of a binding (faults 8 to 13 of docs/reliability.md).

| result | the reservation | the pod |
|---|---|---|
| succeeded | stays until the watch shows the pod there | `Scheduled` is recorded |
| conflict | given up, and the pod read: whatever is true is adopted | error backoff, until then |
| not found | given up, and the pod read: gone, it is dropped | error backoff, until then |
| refused (403, 422, …) | given up | error backoff; event and condition SchedulerError |
| overloaded (429, 5xx) | given up | error backoff, at least Retry-After; nobody is told, the server is busy |
| withdrawn by `may_bind` | given up | its old turn again |
| any of these after an unknown result | stays | as after an unknown one |
| unknown | stays | read, with backoff: where it is unassigned the same binding is posted again |
| unknown, and withdrawn since | stays | read, with backoff; its old turn again once the result is known |

An unknown result becomes known by evidence only, never by time alone: the pod is seen on a node, or leaving; the
binding posted again succeeds; or a read shows the pod unassigned that was asked for when no earlier request could land
any more (`LANDS_WITHIN`). Such a read is a quorum read of etcd's: resourceVersion unset, "Most Recent"
(https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list). A watch may be behind.
"""

from __future__ import annotations

from policyengine.cluster.journal import stable_hash
from policyengine.cluster.pod_info import PodState
from policyengine.scheduler import conditions_and_events, messages
from policyengine.scheduler.actions import ReadPod
from policyengine.scheduler.binding import verification
from policyengine.scheduler.core import Core, failed_with
from policyengine.scheduler.reservations import Decision, Phase

SLEW = 0.1
"""How much faster or slower than time itself the core's clock may run, as a share: it makes good a step of the
machine's (`kube.runner`). The server's does not, so many of its seconds have passed for certain only once a tenth more
have passed here."""
LANDS_WITHIN = 60.0 * (1 + SLEW)
"""Seconds after which a request that was given up can land no more: kube-apiserver's --request-timeout (a create ends
after 34 s already, apiserver/pkg/endpoints/handlers). What lies in a socket of ours goes with the connection
(`kube.http.aiohttp_transport`)."""
MOST_TOLD_AGAIN = 1000
RETRY_AFTER_SPREAD = 0.5
"""Retry-After is stretched by up to this share of itself, by pod, so that not all come back at once."""


def retry_after(uid: str, seconds: float) -> float:
    """Seconds to wait for what is about this pod, where the server asks for `seconds`."""
    fraction = stable_hash(uid) / 2**64
    return seconds * (1 + SLEW) * (1 + RETRY_AFTER_SPREAD * fraction)


def bind_succeeded(core: Core, message: messages.BindSucceeded) -> None:
    """The binding was created."""
    decision = core.bindings.end(message.uid)
    if decision is None:
        return
    pod = core.view.pods.get(message.uid)
    if pod is not None and pod.state is PodState.ASSUMED:
        core.confirmed.add(message.uid)
    _bound(core, decision)


def bind_failed(core: Core, message: messages.BindFailed) -> None:
    """The binding was refused; nothing was changed on the server."""
    decision = core.bindings.get(message.uid)
    if decision is None:
        return
    pod = core.view.pods.get(message.uid)
    if pod is not None and pod.state is PodState.BOUND:
        core.bindings.end(message.uid)
        if decision.unsure and pod.node_name == decision.bind.node:
            _bound(core, decision)  # by an earlier request
        else:
            core.unreserve(decision.held)  # the watch was faster, and somebody else too
        return
    if decision.unsure:  # a conflict may be with ourselves
        gangs = decision.held.served.queue.gangs
        if message.failure is not messages.BindFailure.CONFLICT and gangs.mark_changed(message.uid):
            decision.withdrawn = decision.withdrawn or message.message
        core.bindings.read_later(decision, core.now, retry_after(message.uid, message.retry_after))
        core.timeline.record(message.uid, core.now, "unknown", decision.bind.node, message.message)
        return
    core.bindings.end(message.uid)
    _give_back(core, decision, message)


def bind_unknown(core: Core, message: messages.BindUnknown) -> None:
    """The request's result is unknown."""
    decision = core.bindings.get(message.uid)
    if decision is None:
        return
    again, decision.unsure, decision.unknown_at = decision.unsure, True, core.now
    core.timeline.record(message.uid, core.now, "unknown", decision.bind.node, message.message)
    if again:
        core.bindings.read_later(decision, core.now)  # not in a hot loop with a server that fails each time
    else:
        read(core, decision)


def read_pod_failed(core: Core, message: messages.ReadPodFailed) -> None:
    """A read was not answered either."""
    decision = core.bindings.get(message.uid)
    if decision is not None and decision.phase is Phase.READING:
        core.bindings.read_later(decision, core.now, retry_after(message.uid, message.retry_after))


def read_node_pods_failed(core: Core, message: messages.ReadNodePodsFailed) -> None:
    """A node's pods were not read."""
    verification.not_answered(core, message.asked.node, retry_after(message.asked.node, message.retry_after))


def settle(core: Core, decision: Decision) -> None:
    """A pod with a binding under way was seen, which tells the result where it stands on a node."""
    bind = decision.bind
    pod = core.view.pods.get(bind.uid)
    if pod is None or pod.state is not PodState.BOUND:
        return
    if pod.node_name == bind.node and decision.phase is Phase.READING:
        core.bindings.end(bind.uid)
        _bound(core, decision)
    elif pod.node_name != bind.node or decision.phase is Phase.PREPARING:
        # By somebody else, be it on the same node.
        core.bindings.end(bind.uid)
        core.unreserve(decision.held)
        core.timeline.record(bind.uid, core.now, "observed", pod.node_name)


def seen_unassigned(core: Core, decision: Decision, asked_at: float) -> None:
    """A pod whose binding's result is unknown was read, and stands on no node; asked for at `asked_at`, in seconds."""
    if decision.phase is not Phase.READING or decision.read_at is not None:
        return
    if asked_at - decision.unknown_at >= LANDS_WITHIN:
        decision.unsure = False
    if not decision.withdrawn:
        core.bindings.post(decision)
        core.actions.append(decision.bind)
    elif decision.unsure:
        core.bindings.read_later(decision, core.now)
    else:
        core.bindings.end(decision.bind.uid)
        core.withdraw(decision.held, decision.withdrawn)


def _bound(core: Core, decision: Decision) -> None:
    queued, bind = decision.held.queued, decision.bind
    if decision.withdrawn:  # the others were tried without it
        decision.held.served.queue.gangs.mark_changed(bind.uid, requeue_refused=True)
    core.timeline.record(bind.uid, core.now, "bound", bind.node, bind.policy_hash)
    core.log(decision.held.runtime, "postBind", queued.pod, bind.node)
    core.actions.append(conditions_and_events.scheduled(queued.pod, bind.node, decision.held.runtime.policy))
    _post_bind(core, decision)
    verification.begin(core, decision)


def _post_bind(core: Core, decision: Decision) -> None:
    """Tell the PostBind plugins; one that fails changes nothing, and is told of in the pod's timeline."""
    pod, node, runtime = decision.held.queued.pod, decision.bind.node, decision.held.runtime
    for plugin in runtime.profile.post_bind:
        try:
            told = plugin.post_bind(pod, node, core.view.snapshot())
        except Exception as failure:
            core.timeline.record(pod.uid, core.now, "not announced", plugin.name, failed_with(failure).message)
            continue
        if told is not None:
            core.actions.append(conditions_and_events.announced(pod, told, runtime.policy, "Binding"))


def read(core: Core, decision: Decision) -> None:
    """Read the pod of a binding whose result is unknown."""
    bind = decision.bind
    core.bindings.read(decision)
    core.actions.append(ReadPod(bind.uid, bind.namespace, bind.name, core.now))


def _give_back(core: Core, decision: Decision, message: messages.BindFailed) -> None:
    """The reservation ends; the pod goes where the failure says."""
    held, bind = decision.held, decision.bind
    served, queued = held.served, held.queued
    if message.failure is messages.BindFailure.WITHDRAWN:
        core.withdraw(held, decision.withdrawn or message.message)
        return
    core.release(held, message.message)
    if message.failure is messages.BindFailure.REFUSED:
        text = f'running Bind plugin "DefaultBinder": {message.message}'
        core.fail(served, queued, conditions_and_events.SCHEDULER_ERROR, text, node=bind.node)
    else:
        fail_quietly(core, decision, message.message, message.retry_after)
        if message.failure is not messages.BindFailure.OVERLOADED:
            core.actions.append(ReadPod(bind.uid, bind.namespace, bind.name, core.now))


def fail_quietly(core: Core, decision: Decision, message: str, seconds: float) -> None:
    """The pod takes another turn after its backoff, and nobody is told. `seconds`: how long the server asks to wait."""
    held, uid = decision.held, decision.bind.uid
    not_before = core.now + retry_after(uid, seconds) if seconds > 0 else 0.0
    core.timeline.record(uid, core.now, "failed", decision.bind.policy_hash, message)
    held.served.queue.failed(held.queued, core.now, not_before=not_before)


def tell_again(core: Core, since: float) -> None:
    """A predecessor died: of what was bound from then on, the newest `MOST_TOLD_AGAIN`, the event Scheduled is written.
    One that is there already keeps its place, as both have one name (`events`). Who decided is not known any more."""
    bound = [
        pod
        for pod in core.view.pods.values()
        if pod.state is PodState.BOUND and (pod.scheduled_at or 0.0) >= since and core.profile_of(pod) is not None
    ]
    bound.sort(key=lambda pod: (pod.scheduled_at, pod.uid))
    core.actions += [conditions_and_events.scheduled(pod, pod.node_name, "") for pod in bound[-MOST_TOLD_AGAIN:]]
