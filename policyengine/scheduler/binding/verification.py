"""Whether a binding holds beside what others bind meanwhile: `binding.verify`, fault 18 of docs/reliability.md.

The API server checks no room: schedulers that choose a node in the same moment overfill it, and none of them is told.

    bound ──> the node's pods are read ──> the policy lets it in beside those that come before it: it stays
                      ^               └──> it does not: it is evicted, and its controller makes it anew
                      └── again where somebody else binds a pod to the node, for a minute

Rules:
1. Whoever verifies says so on the pod, by the binding itself (`GIVES_WAY`). Only such a pod gives way, only before a
   kubelet has taken it (`status.startTime`), and only if it has a controller: nobody would make a bare one anew.
2. All other pods on the node come first, whenever they were bound: nobody evicts them. Those that give way follow in
   the order of the second in which they were bound (PodScheduled), then of their UIDs. That is read off the pods alone:
   two that both verify see the same order, and of two pods that exclude each other exactly the later is evicted.
3. A pod that is leaving and was never taken by a kubelet counts no more.
4. Who is refused by a node that it has to itself has lost to nobody: a taint or a cordon evicts no pod.
5. Where nobody came to the node since the decision was made, it holds: no policy is asked again.
6. The policy that decided is asked, whatever serves by now. A new leader knows only the one that serves: it verifies
   what that one bound (the hash in `GIVES_WAY`) within the last minute.

A node that changes has the decisions under way for it asked again (faults 15 and 18): it was cordoned, tainted, shrunk
or deleted, or somebody else placed a pod on it, or a pod on it or on its way to it was resized or has other labels. The
pods on their way to it are filtered again, those not sent yet first and newest first, each without itself and without
those already withdrawn.
- At Permit nothing was sent: the reservation is given up and the pod takes its old turn again.
- At PreBind volumes may have been written to, which stays; no binding was. The same. What a PreBind plugin has
  prepared, or is preparing, its filter does not count any more: the plugin is asked again.
- A binding is withdrawn, which a runner that asks `may_bind` respects. A binding that was sent may land all the same:
  it is not posted again, but its pod counts when the others are filtered.

Example: a, then b are being bound to n1, which has room for both; neither is sent. A foreign pod takes half the room.
b is filtered first, as if only a were there, and refused: its binding is withdrawn. a then fits and stays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.scheduler import conditions_and_events
from policyengine.scheduler.actions import DeleteVictim, ReadNodePods
from policyengine.scheduler.core import Core, failed_with
from policyengine.scheduler.other_schedulers import NEVER, WATCHED, UnverifiedBindings
from policyengine.scheduler.profiles import ProfileRuntime
from policyengine.scheduler.reservations import READ_AGAIN, READ_AGAIN_AT_MOST, Decision, Phase, Reservation

GIVES_WAY = "policyengine.io/gives-way"
"""The annotation of a pod that was bound by somebody who verifies: the hash of the policy that decided."""


def begin(core: Core, decision: Decision) -> None:
    """The binding was created."""
    bind = decision.bind
    if core.unverified is not None and GIVES_WAY in bind.annotations:
        core.unverified.watch(bind.uid, bind.node, decision.held.runtime, decision.held.number, core.now)
        look(core, core.unverified, bind.node)


def take_over(core: Core) -> None:
    """A predecessor may have bound what nobody has verified."""
    if core.unverified is None:
        return
    for pod in core.view.pods.values():
        served = core.profile_of(pod)
        is_fresh = pod.state is PodState.BOUND and core.now - (pod.scheduled_at or 0.0) < WATCHED
        if served is None or not is_fresh or pod.annotations.get(GIVES_WAY) != served.runtime.policy_hash:
            continue
        core.unverified.watch(pod.uid, pod.node_name, served.runtime, NEVER, core.now)
        look(core, core.unverified, pod.node_name)


def somebody_came(core: Core, node: str) -> None:
    """Somebody else has bound a pod to the node."""
    unverified = core.unverified
    if unverified is None:
        return
    if len(unverified.came) > core.view.nodes.n:
        unverified.came = {name: at for name, at in unverified.came.items() if name in core.view.nodes.row_of}
    unverified.came[node] = core.last_number
    if node in unverified.bound:
        look(core, unverified, node)


def look(core: Core, unverified: UnverifiedBindings, node: str) -> None:
    """Have the node's pods read, once at a time."""
    unverified.read_at.pop(node, None)
    is_read = node in unverified.reading
    unverified.reading[node] = is_read
    if not is_read:
        core.actions.append(ReadNodePods(node))


def look_again(core: Core, unverified: UnverifiedBindings) -> None:
    """Read the nodes whose time has come."""
    for node in [node for node, at in unverified.read_at.items() if at <= core.now]:
        look(core, unverified, node)


def not_answered(core: Core, node: str, seconds: float) -> None:
    """The node's pods could not be read; the server asks to wait so long."""
    unverified = core.unverified
    if unverified is not None and unverified.reading.pop(node, None) is not None:
        wait = min(READ_AGAIN_AT_MOST, READ_AGAIN * 2.0 ** min(unverified.failures, 8))
        unverified.failures += 1
        unverified.read_at[node] = core.now + max(wait, seconds)


def answered(core: Core, node: str, take_in: Callable[[], None], listed: frozenset[str]) -> None:
    """The node's pods were read: take them in, and evict what does not hold. `listed`: their UIDs."""
    unverified = core.unverified
    if unverified is None:
        return
    again = unverified.reading.get(node, False)
    take_in()  # who is seen for the first time now has the node read no more
    unverified.failures = 0
    unverified.reading.pop(node, None)
    if core.is_synced:
        _verify(core, unverified, node, listed)
    else:
        unverified.read_at[node] = core.now + READ_AGAIN
    if again:
        look(core, unverified, node)


def _verify(core: Core, unverified: UnverifiedBindings, node: str, listed: frozenset[str]) -> None:
    row = core.view.nodes.row_of.get(node)
    on = {} if row is None else core.view.nodes.pods_on(row)
    ours = unverified.bound.get(node, {})
    for uid in [uid for uid in ours if uid not in on or _has_started(on[uid])]:
        unverified.forget(uid, node)  # one that is not listed may have been bound since the list
    turns = {uid: _turn(pod) for uid, pod in on.items()}
    absent = {uid for uid, pod in on.items() if uid not in listed or (pod.deleting and not _has_started(pod))}
    for uid in sorted(ours, key=turns.__getitem__):
        pod, bound = on[uid], ours[uid]
        if bound.is_evicted or uid in absent:
            absent.add(uid)
            continue
        if unverified.came.get(node, NEVER) < bound.number:
            continue
        later = [other for other in on if turns[other] > turns[uid]]
        reason = refusal_now(core, pod, node, bound.runtime, [*absent, *later])
        if not reason or refusal_now(core, pod, node, bound.runtime, list(on)):
            continue
        core.timeline.record(uid, core.now, "gives way", node, reason)
        if pod.owner is None:
            unverified.forget(uid, node)
            core.actions.append(conditions_and_events.lost(pod, node, reason, bound.runtime.policy))
        else:
            bound.is_evicted = True
            absent.add(uid)
            core.actions.append(_eviction(pod, node, reason, bound.runtime.policy))


def eviction_answered(core: Core, asked: DeleteVictim, wait: float | None) -> None:
    """The pod is deleted; else (`wait`: seconds) the node is read again: a kubelet may have taken the pod meanwhile."""
    unverified, pod = core.unverified, core.view.pods.get(asked.uid)
    if unverified is None or pod is None:
        return
    bound = unverified.bound.get(pod.node_name, {}).get(asked.uid)
    if wait is None:
        unverified.forget(asked.uid, pod.node_name)
    elif bound is not None:
        bound.is_evicted = False
        unverified.read_at[pod.node_name] = core.now + wait


def _has_started(pod: PodInfo) -> bool:
    return pod.started_at is not None or pod.phase not in ("", "Pending")


def _turn(pod: PodInfo) -> tuple[float, str] | tuple[()]:
    """The larger one gives way to the smaller one; () for a pod that gives way to nobody."""
    if GIVES_WAY not in pod.annotations or pod.owner is None or _has_started(pod):
        return ()
    return pod.scheduled_at or inf, pod.uid


def _eviction(pod: PodInfo, node: str, reason: str, policy: str) -> DeleteVictim:
    return DeleteVictim(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        preemptor="",
        message=f"{pod.scheduler_name}: node {node} was bound to by another scheduler at the same time: {reason}",
        observed_generation=pod.generation,
        event=conditions_and_events.lost(pod, node, reason, policy),
        reason="EvictionByScheduler",
        resource_version=pod.resource_version,
    )


NODE_GONE = "node is gone"


def revalidate(core: Core, node: str) -> None:
    """Filter every pod on its way to the node again; what has arrived stays."""
    coming = [uid for uid, pod in core.view.pods_of_node(node).items() if pod.state is PodState.ASSUMED]
    decisions = [core.bindings[uid] for uid in coming if uid in core.bindings]
    decisions.sort(key=lambda one: (one.is_sent, -one.number))
    withdrawn = [one.bind.uid for one in decisions if one.withdrawn and not one.is_sent]
    for decision in decisions:
        if decision.phase is Phase.PREPARING:
            _revalidate_preparing(core, decision, withdrawn)
        elif not decision.withdrawn:
            decision.withdrawn = _refusal(core, decision.held, withdrawn)
            if decision.withdrawn:
                decision.held.served.queue.gangs.mark_changed(decision.bind.uid)
                if not decision.is_sent:
                    withdrawn.append(decision.bind.uid)
    for uid in reversed(coming):
        waiting = core.waiting_pods.get(uid)
        if waiting is not None and (reason := _refusal(core, waiting.held, [])):
            core.waiting_pods.pop(uid, None)
            core.withdraw(waiting.held, reason)


def _revalidate_preparing(core: Core, decision: Decision, withdrawn: list[str]) -> None:
    decision.ask_again = True
    asked_anyway = frozenset(step.plugin.name for step in decision.steps)
    reason = _refusal(core, decision.held, withdrawn, asked_anyway)
    if reason:
        core.bindings.end(decision.bind.uid)
        core.withdraw(decision.held, reason)


def _refusal(core: Core, held: Reservation, without: list[str], but: frozenset[str] = frozenset()) -> str:
    return refusal_now(core, held.queued.pod, held.node, held.runtime, without, but)


def refusal_now(
    core: Core,
    pod: PodInfo,
    node: str,
    runtime: ProfileRuntime,
    without: list[str],
    but: frozenset[str] = frozenset(),
) -> str:
    """Why the pod would be refused on its node now; empty if it would not be, or if that is unknown. `without`: pods to
    leave out besides itself. `but`: plugins whose refusal does not count."""
    row = core.view.nodes.row_of.get(node)
    if row is None:
        return NODE_GONE
    try:
        with core.view.hypothetically(remove=[pod.uid, *without]):
            diagnosis = runtime.evaluator.filter(pod, core.view.snapshot())
            status = diagnosis.refusal(row)
    except Exception as failure:  # a filter that fails says nothing against the decision it has let pass
        core.timeline.record(pod.uid, core.now, "not revalidated", node, failed_with(failure).message)
        return ""
    if status.is_success or status.plugin in but:
        return ""
    return status.message or status.plugin or "refused"
