"""Where a pod nearly fits: the node that lacks least, and the fewest running pods whose going would make room.

Rule: only such pods are named as the policy lets go for the pod: those of at most its priority, or that borrow what a
quota owes it; whom `preempt { victims }` lets go; no more than `maxVictims`; none of what a quota guarantees others,
none that a disruption budget protects, no part of a gang that the rest cannot do without (`Preemptible`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.node_table import NodeTable
from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.diagnosis import kubectl_commands
from policyengine.diagnosis.what_if import Attempt, Change, WhatIf, waiting_mates
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.nominated import filter_node_with_nominated
from policyengine.framework.status import Code, Rows
from policyengine.plugins.node_state.node_ports import collide
from policyengine.plugins.preemption.candidate_node import Candidate
from policyengine.plugins.preemption.preemptible import Preemptible, Unit
from policyengine.plugins.preemption.victim_selection import DisruptionBudgets, select_victims
from policyengine.quantity import format_amount

NODES: Final = 3
"""Nodes that are looked at closely."""
MEMBERS: Final = 8
"""Members of a gang for which room is made."""
ALONE: Final = 64
"""Pods of a node that are taken away each by itself."""

Demand = Sequence[tuple[str, int]]


def nearest_fit(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Mapping[str, int] | None:
    """{resource: what is free of it} for the resources the pod has to ask less of, on the node where that is fewest
    and least; None where every node has no pod slot, or nothing at all of something, left."""
    with what_if.cluster_of(attempt) as snapshot:
        nodes, demand = snapshot.nodes, attempt.pod.shape.amounts
        usable = nodes.pod_count[rows] < nodes.allowed_pods[rows]
        count = np.zeros(len(rows), dtype=np.int64)
        less = np.zeros(len(rows))
        for resource, amount in demand:
            free = nodes.free(resource)[rows]
            short = amount > free
            usable &= ~short | (free > 0)
            count += short
            less += np.where(short, (amount - free) / amount, 0.0)
        order = _order(rows, usable & (count > 0), (count, less), nodes)
        if not order:
            return None
        return {name: int(free) for name, amount in demand if amount > (free := nodes.free(name)[order[0]])}


def places(demand: Mapping[str, int], nodes: NodeTable, rows: Rows) -> int:
    """How many pods that ask for so much have room on the rows."""
    free = np.maximum(nodes.allowed_pods[rows] - nodes.pod_count[rows], 0).astype(np.int64)
    for resource, amount in demand.items():
        free = np.minimum(free, np.maximum(nodes.free(resource)[rows], 0) // amount)
    return int(free.sum())


def roomiest(attempt: Attempt, what_if: WhatIf, rows: Rows) -> list[int]:
    """The few rows that lack least for the pod, those that lack nothing first."""
    nodes = what_if.view.nodes
    lack = _lack(attempt.pod.shape.amounts, nodes, rows)
    return _order(rows, np.ones(len(rows), dtype=np.bool_), (lack,), nodes)[:NODES]


def free_room(attempt: Attempt, what_if: WhatIf, rows: Rows) -> Iterator[Attempt]:
    """The fewest pods that could go from one of the rows, so that the pod has room there; of a gang, for all of its
    members that need some."""
    evaluator = what_if.evaluator(attempt)
    if evaluator is None:
        return
    view = what_if.view
    found: list[tuple[tuple[int, int], str, tuple[PodInfo, ...], str]] = []
    with what_if.cluster_of(attempt):
        for row in roomiest(attempt, what_if, rows):
            victims = _victims(evaluator, what_if, attempt.pod, row)
            if victims:
                what = _what(attempt.pod, view.nodes, row)
                found.append(
                    ((len(victims), max(pod.priority for pod in victims)), view.nodes.names[row], victims, what)
                )
        further: tuple[PodInfo, ...] = ()
        if what_if.left > 1 and found:
            best = min(found, key=lambda one: one[:2])
            further = _for_mates(evaluator, what_if, attempt, best[2], view.nodes.row_of[best[1]])
            found = [(best[0], best[1], (*best[2], *further), best[3])]
    before = [view.pods[uid] for uid in sorted(attempt.gone) if uid in view.pods]
    budgets = DisruptionBudgets(view.snapshot())
    for _, name, victims, what in sorted(found, key=lambda one: one[:2]):
        if any(budgets.violated_by([pod for pod in (*before, *victims) if not pod.deleting])):
            continue
        yield _freed(attempt, evaluator, view, what, name, victims)


def _for_mates(
    evaluator: Evaluator, what_if: WhatIf, attempt: Attempt, victims: Sequence[PodInfo], row: int
) -> tuple[PodInfo, ...]:
    """Who else has to go so that the pod's mates have room too, once the pod itself is on its row."""
    view, names = what_if.view, what_if.view.nodes.names
    placed = {uid for uid, _ in what_if.mates} | {attempt.pod.uid}
    further: list[PodInfo] = []
    with ExitStack() as stack:
        stack.enter_context(view.hypothetically([pod.uid for pod in victims], [(attempt.pod.uid, names[row])]))
        rest = [mate for mate in waiting_mates(view, attempt.pod) if mate.uid not in placed]
        for mate in rest[: min(what_if.left - 1, MEMBERS)]:
            chosen = evaluator.select_node(mate, view.snapshot())
            if chosen is not None:
                stack.enter_context(view.hypothetically(add=[(mate.uid, chosen.node)]))
                continue
            refused = evaluator.filter(mate, view.snapshot()).rows_with(Code.UNSCHEDULABLE)
            tried = [(_victims(evaluator, what_if, mate, one), one) for one in roomiest(attempt, what_if, refused)]
            going, here = min((one for one in tried if one[0]), key=lambda one: len(one[0]), default=((), -1))
            if not going:
                break
            further += going
            stack.enter_context(view.hypothetically([pod.uid for pod in going], [(mate.uid, names[here])]))
    return tuple(further)


class _Evictable(Preemptible):
    """Who may go: running pods, not such as wait and would be placed."""

    def __init__(self, pod: PodInfo, evaluator: Evaluator, what_if: WhatIf) -> None:
        super().__init__(pod, evaluator.profile, what_if.view, equals=True)
        self._there = what_if.there

    def on(self, row: int) -> list[list[Unit]]:
        there = self._there
        if there is None:
            return super().on(row)
        running = ([unit for unit in units if all(one.uid in there for one in unit)] for units in super().on(row))
        return [units for units in running if units]


def _victims(evaluator: Evaluator, what_if: WhatIf, pod: PodInfo, row: int) -> tuple[PodInfo, ...]:
    """The fewest pods that may go from the row, after which the pod may come: those that go anyway where they
    suffice, else one alone, else as preemption would choose. Empty where none will do."""
    view = what_if.view
    going = tuple(one for one in view.nodes.pods_on(row).values() if one.deleting)
    if going and _helps(evaluator, view, pod, row, going):
        return going
    allowed, budgets = _Evictable(pod, evaluator, what_if), DisruptionBudgets(view.snapshot())
    units = [unit for listed in allowed.on(row) for unit in listed]

    def least(unit: Unit) -> tuple[int, int, int, str]:
        size = sum(amount for one in unit for _, amount in one.shape.amounts)
        return len(unit), max(one.priority for one in unit), size, unit[0].key

    for unit in sorted(units[:ALONE], key=least):
        few = allowed.most is None or len(unit) <= allowed.most
        if few and not any(budgets.violated_by(unit)) and _helps(evaluator, view, pod, row, unit):
            return unit
    answer = select_victims(evaluator, view, pod, row, budgets, allowed)
    return answer.victims if isinstance(answer, Candidate) and not answer.violations else ()


def _helps(evaluator: Evaluator, view: ClusterView, pod: PodInfo, row: int, going: Sequence[PodInfo]) -> bool:
    with view.hypothetically([one.uid for one in going]):
        return filter_node_with_nominated(evaluator, view, pod, row).is_success


def _what(pod: PodInfo, nodes: NodeTable, row: int) -> str:
    """What the node lacks for the pod."""
    lacks = {name: amount - int(free) for name, amount in pod.shape.amounts if amount > (free := nodes.free(name)[row])}
    told = [f"{format_amount(name, amount)} {name}" for name, amount in lacks.items()]
    if nodes.pod_count[row] >= nodes.allowed_pods[row]:
        told.append("a pod slot")
    held = [port for one in nodes.pods_on(row).values() for port in one.shape.host_ports]
    ports = sorted({port[2] for port in pod.shape.host_ports if collide((port,), tuple(held))})
    if ports:
        told.append(f"host port {', '.join(map(str, ports))}")
    return " and ".join(told) or "room"


def _freed(
    attempt: Attempt, evaluator: Evaluator, view: ClusterView, what: str, node: str, leaving: Sequence[PodInfo]
) -> Attempt:
    ends = all(pod.deleting for pod in leaving)
    names = ", ".join(f"{pod.key}{_whose(evaluator, pod)}" for pod in leaving)
    how = f"wait until {names} has terminated" if ends else f"delete or move {names}"
    detail = {"node": node, "what": what, "pods": [pod.key for pod in leaving]}
    cost = 1.1 if ends else 1.5 + 0.2 * len(leaving)
    line, pods = "", [pod.name for pod in leaving]
    if len({pod.namespace for pod in leaving}) == 1 and not ends:
        line = kubectl_commands.line("delete", "pod", *pods, names=pods, namespace=leaving[0].namespace)
    change = Change("free", "", f"free {what} on {node}: {how}", cost, detail, line)
    return attempt.also(change, gone=attempt.gone | {pod.uid for pod in leaving})


def _whose(evaluator: Evaluator, pod: PodInfo) -> str:
    """` (ReplicaSet web, quota batch)`: who will make it anew, and who loses it."""
    owner = pod.owner
    said = [] if owner is None else [f"{owner.kind} {owner.name}"]
    said += [f"quota {quota.name}" for quota in evaluator.profile.quotas.of(pod)]
    return f" ({', '.join(said)})" if said else ""


def _lack(demand: Demand, nodes: NodeTable, rows: Rows) -> NDArray[np.float64]:
    """What each node lacks, as a share of the demand, summed over the resources: `float64[rows]`."""
    lack = np.zeros(len(rows))
    for resource, amount in demand:
        lack += np.maximum(amount - nodes.free(resource)[rows], 0) / amount
    return lack + (nodes.pod_count[rows] >= nodes.allowed_pods[rows])


def _order(rows: Rows, usable: NDArray[np.bool_], keys: Sequence[NDArray[np.generic]], nodes: NodeTable) -> list[int]:
    """The usable rows, the smallest keys first; of equals the node whose name comes first."""
    places = np.flatnonzero(usable).tolist()
    listed = [key.tolist() for key in keys]
    names = nodes.names
    places.sort(key=lambda place: (*(key[place] for key in listed), names[rows[place]]))
    return [int(rows[place]) for place in places]
