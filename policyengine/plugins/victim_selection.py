"""The fewest pods that have to leave one node, tried out on it: SelectVictimsOnNode.

All pods of lower priority are taken off. If the pod then passes every filter, they are put back one by one as long as
it still does: first those whose leaving would break a disruption budget, then the others, the most important first.
Whoever could not be put back is a victim (plugins/defaultpreemption/default_preemption.go, v1.36).

Every trial runs the profile's filters, rules included, over the view without the pods in question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policyengine.framework.evaluation import Evaluator
from policyengine.framework.nominated import judge_row_with_nominated
from policyengine.framework.status import Code, Status
from policyengine.plugins.disruption_budget import DisruptionBudgets
from policyengine.plugins.preemption_candidate import Candidate, importance

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import ClusterView

NO_VICTIMS = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("No preemption victims found for incoming pod",))


def potential_victims(view: ClusterView, row: int, pod: PodInfo) -> list[PodInfo]:
    """The pods on the node that may have to go for `pod`, the most important first."""
    return sorted((one for one in view.nodes.pods_on(row).values() if one.priority < pod.priority), key=importance)


def select_victims(
    evaluator: Evaluator, view: ClusterView, pod: PodInfo, row: int, budgets: DisruptionBudgets
) -> Candidate | Status:
    """The candidate that the node is, or why it is none."""
    potential = potential_victims(view, row, pod)
    if not potential:
        return NO_VICTIMS
    gone = {victim.uid: victim for victim in potential}
    status = _without(evaluator, view, pod, row, gone)
    if not status.is_success:
        return status
    violated = budgets.violated_by(potential)
    broken: list[PodInfo] = []
    others: list[PodInfo] = []
    for breaks, victims in ((True, broken), (False, others)):
        for victim in (one for one, flag in zip(potential, violated, strict=True) if flag is breaks):
            del gone[victim.uid]
            if not _without(evaluator, view, pod, row, gone).is_success:
                gone[victim.uid] = victim
                victims.append(victim)
    if not gone:
        # The filters let the pod pass although it was refused with the same pods: nobody has to go, so this is
        # nothing that preemption can do.
        return Status(Code.ERROR, (f'expected at least one victim pod on node "{view.nodes.names[row]}"',))
    return Candidate(row, in_eviction_order(broken, others), len(broken))


def in_eviction_order(broken: Sequence[PodInfo], others: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
    """The victims, the most important first; of equals those first whose budget is broken."""
    return tuple(sorted((*broken, *others), key=importance))


def _without(evaluator: Evaluator, view: ClusterView, pod: PodInfo, row: int, gone: dict[str, PodInfo]) -> Status:
    if not gone:
        return judge_row_with_nominated(evaluator, view, pod, row)
    with view.hypothetically(remove=list(gone)):
        return judge_row_with_nominated(evaluator, view, pod, row)
