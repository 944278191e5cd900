"""Which victims a disruption budget protects (policy/v1 PodDisruptionBudget).

Budgets are honoured where that is possible and broken where it is not: a victim that would break one counts as a
violation. On each node the victims are counted against the budgets afresh, the most important first
(filterPodsWithPDBViolation, plugins/defaultpreemption/default_preemption.go, v1.36).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policyengine.plugins.selectors.label_selector import PodSelector, compile_pod_selector

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo
    from policyengine.cluster.snapshot import Snapshot
    from policyengine.cluster.workload_objects import PodDisruptionBudget


class DisruptionBudgets:
    """The budgets of one snapshot. Lives for one attempt."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._budgets: list[PodDisruptionBudget] = []
        self._selecting: dict[str, list[tuple[int, PodSelector]]] = {}
        """Namespace -> (index of the budget, its selector), of those that select anything."""
        self._matches: dict[tuple[str, int], tuple[int, ...]] = {}
        """(namespace, identity of the label map) -> indices of the budgets that select it. Label maps are shared
        between pods and outlive the attempt."""
        for budget in snapshot.pdbs.values():
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
