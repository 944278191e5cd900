"""The fewest pods that have to leave one node, tried out on it: SelectVictimsOnNode.

All pods that may have to go (`preemptible`) are taken off. If the pod then passes every filter, they are put back one
by one as long as it still does: first those whose leaving would break a disruption budget, then the others, the most
important first. Whoever could not be put back is a victim. Pods of a gang are taken off and put back together
(plugins/defaultpreemption/default_preemption.go, v1.36, which knows no gangs).

Every trial runs the profile's filters, rules included, over the view without the pods in question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_node_with_nominated
from policyengine.framework.status import Code, Status
from policyengine.plugins.preemption.candidate_node import Candidate, importance
from policyengine.plugins.preemption.disruption_budget import DisruptionBudgets
from policyengine.plugins.preemption.preemptible import Preemptible, Unit

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.view import ClusterView

NO_VICTIMS = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("No preemption victims found for incoming pod",))
TOO_MANY = Status(Code.UNSCHEDULABLE, ("node(s) would lose more pods than `maxVictims` of the policy",))


def select_victims(
    evaluator: Evaluator,
    view: ClusterView,
    pod: PodInfo,
    row: int,
    budgets: DisruptionBudgets,
    preemptible: Preemptible,
) -> Candidate | Status:
    """The candidate that the node is, or why it is none."""
    answer: Candidate | Status = NO_VICTIMS
    for potential in preemptible.on(row):
        answer = _selected(evaluator, view, pod, row, budgets, potential)
        if isinstance(answer, Candidate):
            most = preemptible.most
            return answer if most is None or len(answer.victims) <= most else TOO_MANY
    return answer


def _selected(
    evaluator: Evaluator,
    view: ClusterView,
    pod: PodInfo,
    row: int,
    budgets: DisruptionBudgets,
    potential: list[Unit],
) -> Candidate | Status:
    """`potential`: who may go, those that are put back first in front."""
    everybody = [one for unit in potential for one in unit]
    gone = {victim.uid: victim for victim in everybody}
    status = _without(evaluator, view, pod, row, gone)
    if not status.is_success:
        return status
    violated = dict(zip(gone, budgets.violated_by(everybody), strict=True))
    victims: list[PodInfo] = []
    for breaks in (True, False):
        for unit in (unit for unit in potential if any(violated[one.uid] for one in unit) is breaks):
            for one in unit:
                del gone[one.uid]
            if not _without(evaluator, view, pod, row, gone).is_success:
                gone.update((one.uid, one) for one in unit)
                victims += unit
    if not gone:
        # The filters let the pod pass although it was refused with the same pods: nobody has to go, so this is
        # nothing that preemption can do.
        return Status(Code.ERROR, (f'expected at least one victim pod on node "{view.nodes.names[row]}"',))
    broken = [one for one in victims if violated[one.uid]]
    others = [one for one in victims if not violated[one.uid]]
    return Candidate(row, in_eviction_order(broken, others), len(broken))


def in_eviction_order(broken: Sequence[PodInfo], others: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
    """The victims, the most important first; of equals those first whose budget is broken."""
    return tuple(sorted((*broken, *others), key=importance))


def _without(evaluator: Evaluator, view: ClusterView, pod: PodInfo, row: int, gone: dict[str, PodInfo]) -> Status:
    if not gone:
        return filter_node_with_nominated(evaluator, view, pod, row)
    with view.hypothetically(remove=list(gone)):
        return filter_node_with_nominated(evaluator, view, pod, row)
