"""Does a decision under way still hold, now that its node changed? (faults.md, 15 and 18)

A node that was cordoned, tainted, shrunk or deleted, or on which somebody else placed a pod, is asked again about
the pods on their way to it, those not sent yet first and newest first, each without itself and without those already
withdrawn.
- At Permit nothing was sent: the reservation is given up and the pod takes its old turn again.
- At PreBind volumes may have been written to, which stays; no binding was. The same. What a PreBind plugin has
  prepared, or is preparing, is not for its filter to judge any more: the plugin is asked again.
- A binding is withdrawn, which a runner that asks `may_bind` respects. One that was sent may land all the same: it is
  not posted again, but its pod counts where the others are asked about.
"""

from __future__ import annotations

from policyengine.framework.status import Status
from policyengine.scheduler.binding.bindings import Decision, Phase
from policyengine.scheduler.binding.reservation import Reservation
from policyengine.scheduler.core import Core

NODE_GONE = "node is gone"


def recheck(core: Core, node: str) -> None:
    """Ask again about every pod on its way to the node."""
    decisions = core.bindings.on(node)
    if decisions:
        withdrawn = [one.bind.uid for one in decisions if one.withdrawn and not one.is_sent]
        for decision in sorted(decisions, key=_turn):
            if decision.phase is Phase.PREPARING:
                _recheck_preparing(core, decision, withdrawn)
            elif not decision.withdrawn:
                decision.withdrawn = refusal_now(core, decision.held, withdrawn)
                if decision.withdrawn and not decision.is_sent:
                    withdrawn.append(decision.bind.uid)
    for waiting in core.permits:
        if waiting.held.node == node and (reason := refusal_now(core, waiting.held, [])):
            core.permits.pop(waiting.held.queued.uid)
            give_up(core, waiting.held, reason)


def _turn(decision: Decision) -> tuple[bool, int]:
    return decision.is_sent, -decision.number


def _recheck_preparing(core: Core, decision: Decision, withdrawn: list[str]) -> None:
    preparation = decision.preparation
    assert preparation is not None
    preparation.ask_again = True
    asked_anyway = frozenset(step.plugin.name for step in preparation.steps)
    reason = refusal_now(core, decision.held, withdrawn, asked_anyway)
    if reason:
        core.bindings.pop(decision.bind.uid)
        give_up(core, decision.held, reason)


def give_up(core: Core, held: Reservation, reason: str) -> None:
    """A decision that holds no more, and whose binding was not posted: the pod takes its old turn again."""
    core.release(held, reason)
    lane, queued = held.lane, held.queued
    lane.queue.remove(queued.uid)
    lane.queue.restore(queued, core.now, "DecisionWithdrawn")


def refusal_now(core: Core, held: Reservation, without: list[str], but: frozenset[str] = frozenset()) -> str:
    """Why the pod would be refused on its node if it were judged now; empty when it would not be, or when that
    cannot be told. `without`: pods to leave out besides itself. `but`: plugins whose refusal does not count.
    """
    row = core.view.nodes.row_of.get(held.node)
    if row is None:
        return NODE_GONE
    pod = held.queued.pod
    try:
        with core.view.hypothetically(remove=[pod.uid, *without]):
            diagnosis = held.serving.evaluator.filter(pod, core.view.snapshot())
            status = diagnosis.refusal(row)
    except Exception:
        return ""  # a filter that fails says nothing against the decision it has let pass
    return "" if status.is_success or status.plugin in but else _worded(status)


def _worded(status: Status) -> str:
    return status.message or status.plugin or "refused"
