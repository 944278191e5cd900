"""Revalidates decisions under way for a node that changed (faults 15 and 18 of docs/reliability.md).

A node was cordoned, tainted, shrunk or deleted, or somebody else placed a pod on it. The pods on their way to it are
filtered again, those not sent yet first and newest first, each without itself and without those already withdrawn.
- At Permit nothing was sent: the reservation is given up and the pod takes its old turn again.
- At PreBind volumes may have been written to, which stays; no binding was. The same. What a PreBind plugin has
  prepared, or is preparing, its filter does not count any more: the plugin is asked again.
- A binding is withdrawn, which a runner that asks `may_bind` respects. A binding that was sent may land all the same:
  it is not posted again, but its pod counts when the others are filtered.

Example: a, then b are being bound to n1, which has room for both; neither is sent. A foreign pod takes half the room.
b is filtered first, as if only a were there, and refused: its binding is withdrawn. a then fits and stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyengine.scheduler.core import Core, failed_with
from policyengine.scheduler.reservations import Decision, Phase, Reservation

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.scheduler.profiles import ProfileRuntime

NODE_GONE = "node is gone"


def revalidate(core: Core, node: str) -> None:
    """Filter every pod on its way to the node again."""
    decisions = sorted(core.bindings.on(node), key=lambda one: (one.is_sent, -one.number))
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
    for waiting in list(core.waiting_pods.values()):
        if waiting.held.node == node and (reason := _refusal(core, waiting.held, [])):
            core.waiting_pods.pop(waiting.held.queued.uid, None)
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
