"""Selects the fewest victims on one node by trying: SelectVictimsOnNode.

All pods that may be preempted (`preemptible`) are taken off. If the incoming pod then passes every filter, they are put
back one by one while it still passes: first the pods whose eviction would break a disruption budget, then the others,
the most important first. A pod that cannot be put back is a victim. Pods of a gang are taken off and put back together
(plugins/defaultpreemption/default_preemption.go, v1.36, which knows no gangs). Worked example: a pod needs 2 cpu, the
node is full with a (priority 5, 2 cpu) and b (priority 1, 2 cpu). Both are taken off, a is put back, b is the victim.

Every trial runs the profile's filters, rules included, over the view without the pods in question.

Preemption honours disruption budgets if it can and breaks them otherwise. A victim that breaks one counts as a
violation. The victims of each node are counted against the budgets anew, the most important first
(filterPodsWithPDBViolation).
"""

from __future__ import annotations

from collections.abc import Sequence

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.cluster.workload_objects import PodDisruptionBudget
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_node_with_nominated
from policyengine.framework.status import Code, Status
from policyengine.plugins.preemption.candidate_node import Candidate, importance
from policyengine.plugins.preemption.preemptible import Preemptible, Unit
from policyengine.plugins.selectors.label_selector import PodSelector, compile_pod_selector

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
        # The filters pass the pod although they refused it with the same pods: preemption cannot help.
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


class DisruptionBudgets:
    """The budgets of one snapshot. Lives for one attempt."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._budgets: list[PodDisruptionBudget] = []
        self._selecting: dict[str, list[tuple[int, PodSelector]]] = {}
        """Namespace -> (index of the budget, its selector), of those that select anything."""
        self._matches: dict[tuple[str, int], tuple[int, ...]] = {}
        """(namespace, identity of the label map) -> indices of the budgets that select it. Label maps are shared
        between pods and outlive the attempt."""
        for budget in snapshot.objects(PodDisruptionBudget).values():
            selector = compile_pod_selector(budget.spec.selector)
            # A malformed selector selects nothing, and neither does an empty one.
            if isinstance(selector, str) or selector.nothing or selector.empty:
                continue
            of_namespace = self._selecting.setdefault(budget.metadata.namespace, [])
            of_namespace.append((len(self._budgets), selector))
            self._budgets.append(budget)

    @property
    def are_absent(self) -> bool:
        """Whether no budget protects anything."""
        return not self._budgets

    def violated_by(self, pods: Sequence[PodInfo]) -> list[bool]:
        """For each of the pods, which all would go from one node, in order of importance: does that break a budget?

        A pod that is being evicted already (`disruptedPods`) breaks none.
        """
        left: dict[int, int] = {}
        violated: list[bool] = []
        for pod in pods:
            breaks = False
            for index in self._protecting(pod):
                status = self._budgets[index].status
                if pod.name in status.disrupted_pods:
                    continue
                left[index] = left.get(index, status.disruptions_allowed) - 1
                breaks |= left[index] < 0
            violated.append(breaks)
        return violated

    def _protecting(self, pod: PodInfo) -> tuple[int, ...]:
        selecting = self._selecting.get(pod.namespace)
        if selecting is None or not pod.labels:
            return ()
        key = (pod.namespace, id(pod.labels))
        found = self._matches.get(key)
        if found is None:
            found = self._matches[key] = tuple(i for i, selector in selecting if selector.matches(pod.labels))
        return found
