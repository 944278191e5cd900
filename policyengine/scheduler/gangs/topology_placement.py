"""A PodGroup with a topology constraint is placed within one domain: nodes with the same value of a label.

    domains -> in each, alone: as many members as fit (`Draft`) -> of those with enough of them, the best

Rules:
1. Once a pod of the group has a place the others go to its domain, however many it takes; before, any domain will do.
2. Enough members are those that the gang takes; one, for a group that is no gang or has enough already.
3. A domain scores for the members in it, those that stand and those that fit (100·n/most), and for how full it would
   be (NodeResourcesFit, packing, at the weight of its score). Of equals the first by name is taken; kube-scheduler
   takes any.
4. Nobody is preempted for such a group, and no room is kept for it.

The members see the whole cluster: spread and affinity count pods of other domains too. kube-scheduler counts those of
the domain alone.

Source: podGroupSchedulingPlacementAlgorithm, plugins topologyaware and podgrouppodscount, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from policyengine.cluster.pod_groups import NATIVE
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.workload_objects import NativePodGroup
from policyengine.framework.profile import GROUP_PLACEMENT
from policyengine.plugins.resources.fit import NodeResourcesFit
from policyengine.scheduler.core import GROUP_UNSCHEDULABLE, Core
from policyengine.scheduler.gangs.gang_draft import Attempt, Draft, Refused

Mask = NDArray[np.bool_]
NONE_FEASIBLE = "no feasible placements found"


class _Ambiguous(Exception):
    """The pods that have a place stand in no domain, or in several."""


@dataclass(slots=True)
class Placement:
    """What came of looking through the domains."""

    draft: Draft | None
    """The members placed in the best of them, to be kept; None where they fit in none."""
    refused: dict[str, Refused]
    """By UID, why members have no place: in the first domain; with what refused them in any."""
    message: str
    """For the members; "" where they fit."""
    group_message: str
    """For their group."""
    is_error: bool = False


def constraint_of(pod: PodInfo) -> NativePodGroup | None:
    """The pod's group, if it has a topology constraint."""
    group = pod.group
    return group if isinstance(group, NativePodGroup) and group.topology_key else None


def place(attempt: Attempt, group: NativePodGroup) -> Placement:
    """Look for a domain in which enough of the members fit, and place as many there as do."""
    core, members, count = attempt.core, attempt.members, attempt.count
    everybody = replace(attempt, count=len(members))
    standing = _standing(core, group)
    try:
        domains = _domains(core, group.topology_key, standing)
    except _Ambiguous as why:
        failed = {queued.uid: Refused(queued, str(why), is_error=True) for queued in members}
        return Placement(None, failed, str(why), f"cannot determine domain for already scheduled pods: {why}", True)
    if not domains:
        none = {one.uid: Refused(one, NONE_FEASIBLE, frozenset({GROUP_PLACEMENT})) for one in members}
        return Placement(None, none, f"no node has the label `{group.topology_key}`", NONE_FEASIBLE + _unhelped(group))
    refused: dict[str, Refused] = {}
    scored: list[tuple[str, int, int]] = []
    first = ""
    for name, rows in domains.items():
        draft = Draft(everybody, rows)
        draft.fill()
        held = draft.held
        draft.undo()
        first = first or f"room for {len(held)} of {count} members in the first, `{name}`"
        _add(refused, draft.refused)
        if len(held) >= count:
            pods = [one.queued.pod for one in held]
            scored.append((name, len(standing) + len(held), _fullness(attempt, rows, pods)))
    if not scored:
        message = f"0/{len(domains)} domains of `{group.topology_key}` are available: {first}"
        told = f"0/{len(domains)} placements are available, first placement status: {GROUP_UNSCHEDULABLE}"
        return Placement(None, refused, message, told + _unhelped(group))
    most = max(pods for _, pods, _ in scored)
    best = max(scored, key=lambda one: one[1] * 100 // most + one[2])  # of equals the first
    draft = Draft(everybody, domains[best[0]])
    draft.fill()
    return Placement(draft, draft.refused, "", "")


def _unhelped(group: NativePodGroup) -> str:
    """What is added where the API server has the gate WorkloadAwarePreemption."""
    why = ", workload aware preemption is not supported for pod groups with scheduling constraints"
    return why if group.spec.priority is not None else ""


def _standing(core: Core, group: NativePodGroup) -> list[PodInfo]:
    pods = core.view.related.of(NATIVE, group.metadata.key).values()
    return [pod for pod in pods if pod.state is not PodState.PENDING]


def _domains(core: Core, key: str, standing: Sequence[PodInfo]) -> dict[str, Mask]:
    """The domains that the members may go to, by name. Raises `_Ambiguous`."""
    nodes = core.view.nodes
    ids, values = nodes.label_ids(key), nodes.label_values(key)
    there: dict[int, PodInfo] = {}
    for pod in standing:
        row = nodes.row_of.get(pod.node_name)
        if row is None or ids[row] < 0:
            raise _Ambiguous(f"no topology domain found for pod {pod.key}")
        there.setdefault(int(ids[row]), pod)
    if len(there) > 1:
        found = ", ".join(sorted(values[number] for number in there))
        raise _Ambiguous(f"more than 1 domain found for pod group: {found}")
    numbers = list(there) or np.unique(ids[ids >= 0]).tolist()
    by_name = sorted(numbers, key=lambda number: nodes.known_as(values[number]))
    return {values[number]: ids == number for number in by_name}


def _add(refused: dict[str, Refused], more: dict[str, Refused]) -> None:
    """Members wait for what may help them in any domain."""
    for uid, one in more.items():
        known = refused.get(uid)
        if known is None:
            refused[uid] = replace(one, plugins=one.plugins | {GROUP_PLACEMENT}) if one.plugins else one
        else:
            refused[uid] = replace(known, plugins=known.plugins | one.plugins, pending=known.pending | one.pending)


def _fullness(attempt: Attempt, rows: Mask, pods: Sequence[PodInfo]) -> int:
    """NodeResourcesFit's part of the domain's score, weighted; 0 where it does not score."""
    chosen = np.flatnonzero(rows)
    return sum(
        weight * plugin.score_placement(attempt.core.view.nodes, chosen, [pod.shape for pod in pods])
        for plugin, weight in attempt.served.runtime.profile.scores
        if isinstance(plugin, NodeResourcesFit)
    )
