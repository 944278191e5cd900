"""Room for a whole PodGroup of Kubernetes' own, made anywhere in the cluster at once.

So where the API server has the gate WorkloadAwarePreemption: then every PodGroup has a priority. Elsewhere, and
where a policy's `preempt`, a quota or a gang that gives way has a say, room is made member by member (`Draft`).

Rules:
1. Victims are units: a pod, or all pods of a PodGroup whose mode is PodGroup, or of a gang of another kind. A unit's
   priority, the PodGroup's or the highest of its pods', is lower than the priority of the PodGroup that preempts.
2. All units that may go are taken off. If the group fits then, they are put back while it still fits: those whose
   eviction would break a disruption budget first, the most important first.
3. Of equal priority PodGroups' pods are more important than others; of these the larger unit, then the one that began
   earlier; of others the one that began earlier.
4. No member may say `preemptionPolicy: Never`.

A row of units is put back together where that fits, and halved where it does not: the same victims as one by one,
provided that fewer pods never hinder (affinity to a victim would).

Source: framework/preemption/podgrouppreemption.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from policyengine.cluster.pod_groups import NATIVE
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.workload_objects import NativePodGroup
from policyengine.plugins.preemption.default_preemption import NEVER
from policyengine.plugins.preemption.preemptible import Preemptible
from policyengine.plugins.preemption.victim_selection import DisruptionBudgets
from policyengine.scheduler.core import GROUP_UNSCHEDULABLE, Core
from policyengine.scheduler.gangs.gang_draft import Attempt, Draft
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.reservations import Reservation

NOBODY = "No preemption victims found for incoming preemptor"


@dataclass(frozen=True, slots=True)
class GroupRoom:
    """Who has to go for the group, and where its members would stand then."""

    why_not: str = ""
    """Why nobody goes; "" where somebody does."""
    victims: tuple[PodInfo, ...] = ()
    held: tuple[Reservation, ...] = ()


@dataclass(slots=True, eq=False)
class _Unit:
    """Pods that go together."""

    pods: list[PodInfo]
    priority: int

    @property
    def importance(self) -> tuple[float, ...]:
        """Smallest first is the most important first."""
        began = min(inf if pod.started_at is None else pod.started_at for pod in self.pods)
        is_group = self.pods[0].shape.spec.scheduling_group is not None
        return -self.priority, not is_group, -len(self.pods) if is_group else 0, began


def preempts_whole(attempt: Attempt) -> NativePodGroup | None:
    """The PodGroup for which room is made so."""
    pod = attempt.members[0].pod
    group = pod.group
    if not isinstance(group, NativePodGroup) or group.spec.priority is None:
        return None
    profile = attempt.served.runtime.profile
    return group if Preemptible(pod, profile, attempt.core.view).by_priority_alone else None


def find_room(attempt: Attempt, group: NativePodGroup) -> GroupRoom:
    """Whom to evict, so that enough of the members fit."""
    if any(queued.pod.shape.spec.preemption_policy == "Never" for queued in attempt.members):
        return GroupRoom(NEVER)
    units = [one for one in _units(attempt.core, attempt.gang) if one.priority < (group.spec.priority or 0)]
    if not units:
        return GroupRoom(NOBODY)
    gone = {pod.uid for unit in units for pod in unit.pods}
    placed = _placed_without(attempt, gone)
    if placed is None:
        return GroupRoom(GROUP_UNSCHEDULABLE)

    def fits(returning: Sequence[_Unit]) -> bool:
        nonlocal placed
        back = {pod.uid for unit in returning for pod in unit.pods}
        found = _placed_without(attempt, gone - back)
        if found is not None:
            gone.difference_update(back)
            placed = found
        return found is not None

    units.sort(key=lambda unit: unit.importance)
    everybody = [pod for unit in units for pod in unit.pods]
    violated = DisruptionBudgets(attempt.core.view.snapshot()).violated_by(everybody)
    breaks = {pod.uid: breaking for pod, breaking in zip(everybody, violated, strict=True)}
    for violating in (True, False):
        _put_back([one for one in units if any(breaks[pod.uid] for pod in one.pods) is violating], fits)
    return GroupRoom("", tuple(pod for pod in everybody if pod.uid in gone), placed)


def _put_back(units: Sequence[_Unit], fits: Callable[[Sequence[_Unit]], bool]) -> None:
    if not units or fits(units) or len(units) == 1:
        return
    middle = len(units) // 2
    _put_back(units[:middle], fits)
    _put_back(units[middle:], fits)


def _placed_without(attempt: Attempt, gone: set[str]) -> tuple[Reservation, ...] | None:
    draft = Draft(attempt)
    try:
        draft.without(sorted(gone))
        return tuple(draft.held) if draft.fill() else None
    finally:
        draft.undo()


def _units(core: Core, gang: Gang) -> list[_Unit]:
    """Everybody who has a place, but the gang's own members."""
    units: dict[object, _Unit] = {}
    for pod in core.view.pods.values():
        if pod.state is PodState.PENDING or pod.uid in gang.members:
            continue
        together = core.view.scheduling.placed_gang(pod.uid)
        key: object = pod.uid if together is None else id(together.placed)
        priority, group = pod.priority, pod.group
        if isinstance(group, NativePodGroup) and group.spec.priority is not None:
            whole = group.spec.disruption_mode in ("PodGroup", {"all": {}})
            key = (NATIVE, group.metadata.key) if whole else pod.uid
            priority = group.spec.priority if whole else pod.priority
        unit = units.setdefault(key, _Unit([], priority))
        unit.pods.append(pod)
        unit.priority = max(unit.priority, priority)
    return list(units.values())
