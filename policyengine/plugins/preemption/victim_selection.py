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

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView, Snapshot
from policyengine.cluster.workload_objects import PodDisruptionBudget, PodDisruptionBudgetStatus
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_node_with_nominated
from policyengine.framework.status import Code, Status
from policyengine.plugins.preemption.candidate_node import Candidate, importance
from policyengine.plugins.preemption.preemptible import Preemptible, Unit
from policyengine.plugins.selectors.label_selector import PodSelector, Requirement, compile_pod_selector

NO_VICTIMS = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("No preemption victims found for incoming pod",))
TOO_MANY = Status(Code.UNSCHEDULABLE, ("node(s) would lose more pods than `maxVictims` of the policy",))

_MOST_KEPT: Final = 1 << 20
"""Numbers of budgets kept of the label maps of one namespace."""


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


class _Selectors:
    """The budgets of one namespace, found by the labels that they require or refuse: to ask each about each pod would
    take minutes where whoever may write budgets writes thousands, or such with thousands of requirements."""

    def __init__(self) -> None:
        self.allowed: list[int] = []
        """How many disruptions each budget allows."""
        self._disrupted: list[Mapping[str, object]] = []
        """By name, the pods that are being evicted already, of each budget."""
        self._going: set[str] = set()
        """Their names, of all budgets."""
        self._positive: list[tuple[Requirement, ...]] = []
        """What a label must be there for, of each budget."""
        self._by_value: dict[tuple[str, str], list[int]] = {}
        self._by_key: dict[str, list[int]] = {}
        self._anybody: list[int] = []
        """The budgets by a label that their pods have to have, by its key, and those that require none."""
        self._not_value: dict[tuple[str, str], list[int]] = {}
        self._not_key: dict[str, list[int]] = {}
        """Those that the label rules out."""
        self._matches: dict[int, tuple[Mapping[str, str], tuple[int, ...]]] = {}
        """Identity of a label map -> that map, which pods share, and the budgets that select it."""
        self._kept = 0

    def add(self, selector: PodSelector, status: PodDisruptionBudgetStatus) -> None:
        """One more budget."""
        index = len(self.allowed)
        self.allowed.append(status.disruptions_allowed)
        self._disrupted.append(status.disrupted_pods)
        self._going.update(status.disrupted_pods)
        positive = [one for one in selector.requirements if one.operator in ("In", "Exists")]
        self._positive.append(tuple(positive))
        for one in selector.requirements:
            if one.operator == "NotIn":
                for value in one.values:
                    self._not_value.setdefault((one.key, value), []).append(index)
            elif one.operator == "DoesNotExist":
                self._not_key.setdefault(one.key, []).append(index)
        exact = [one for one in positive if one.operator == "In"]
        if exact:
            fewest = min(exact, key=lambda one: len(one.values))
            for value in fewest.values:
                self._by_value.setdefault((fewest.key, value), []).append(index)
        elif positive:
            self._by_key.setdefault(positive[0].key, []).append(index)
        else:
            self._anybody.append(index)

    def protecting(self, pod: PodInfo) -> Sequence[int]:
        """Indices of the budgets that select the pod and have not let it go already."""
        known = self._matches.get(id(pod.labels))
        if known is None:
            known = (pod.labels, tuple(self._selecting(pod.labels)))
            self._kept += len(known[1]) + 1
            if self._kept > _MOST_KEPT:
                self._matches.clear()
                self._kept = 0
            self._matches[id(pod.labels)] = known
        if pod.name not in self._going:
            return known[1]
        return [index for index in known[1] if pod.name not in self._disrupted[index]]

    def _selecting(self, labels: Mapping[str, str]) -> Iterator[int]:
        found = list(self._anybody)
        refusing: set[int] = set()
        for key, value in labels.items():
            found += self._by_value.get((key, value), ())
            found += self._by_key.get(key, ())
            refusing.update(self._not_value.get((key, value), ()))
            refusing.update(self._not_key.get(key, ()))
        for index in found:
            if index not in refusing and all(one.matches(labels) for one in self._positive[index]):
                yield index


_compiled: WeakKeyDictionary[NodeTable, tuple[int, dict[str, _Selectors]]] = WeakKeyDictionary()


class DisruptionBudgets:
    """The budgets of one snapshot. What is worked out of their selectors serves until a budget changes."""

    def __init__(self, snapshot: Snapshot) -> None:
        version = snapshot.version("PodDisruptionBudget")
        known = _compiled.get(snapshot.nodes)
        if known is None or known[0] != version:
            known = _compiled[snapshot.nodes] = version, _selectors(snapshot)
        self._of_namespace = known[1]

    @property
    def are_absent(self) -> bool:
        """Whether no budget protects anything."""
        return not self._of_namespace

    def violated_by(self, pods: Sequence[PodInfo]) -> list[bool]:
        """For each of the pods, which all would go from one node, in order of importance: does that break a budget?

        A pod that is being evicted already (`disruptedPods`) breaks none.
        """
        left_of: dict[str, list[int]] = {}
        violated: list[bool] = []
        for pod in pods:
            selectors, breaks = self._of_namespace.get(pod.namespace), False
            if selectors is not None and pod.labels:
                left = left_of.get(pod.namespace)
                if left is None:
                    left = left_of[pod.namespace] = selectors.allowed.copy()
                for index in selectors.protecting(pod):
                    still = left[index] = left[index] - 1
                    breaks = breaks or still < 0
            violated.append(breaks)
        return violated


def _selectors(snapshot: Snapshot) -> dict[str, _Selectors]:
    """By namespace. A malformed selector selects nothing, and neither does an empty one."""
    found: dict[str, _Selectors] = {}
    for budget in snapshot.objects(PodDisruptionBudget).values():
        selector = compile_pod_selector(budget.spec.selector)
        if not (isinstance(selector, str) or selector.nothing or selector.empty):
            found.setdefault(budget.metadata.namespace, _Selectors()).add(selector, budget.status)
    return found
