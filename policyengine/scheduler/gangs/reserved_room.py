"""Room that is kept for one gang while it drains (`waits` of a gang rule).

A gang that is refused, but would fit if running pods went, has the nodes chosen on which it is to be placed. From then
on another pod may use them only where it does not delay the gang:
- it fits there beside the gang's members, as if they stood there already; or
- it is sure to be gone in time: its `activeDeadlineSeconds` and its grace period end before the gang's wait does; or
- it is more important than every member (`priority`).

Rules:
1. Room is kept for one gang at a time: the first that is refused while none is kept. So no two wait for each other's.
2. It ends when the gang is placed, has too few members, changes, or fits nowhere any more. Then those who were refused
   the room are tried again.
3. The gang's wait counts from its first refusal. When it is over nothing passes the gang any more by its known end.

Which nodes are chosen is told in `draining`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from policyengine.cluster.pod_info import PodState
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.status import Code, Status
from policyengine.scheduler.core import Core
from policyengine.scheduler.gangs.gang import Gang
from policyengine.scheduler.profiles import Lane
from policyengine.scheduler.queue.queueing_hints import KEPT_ROOM

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo

DEFAULT_GRACE = 30
"""Seconds; `terminationGracePeriodSeconds` where a pod does not say."""


@dataclass(slots=True, eq=False)
class KeptRoom:
    """Where a gang is to be placed."""

    gang: Gang
    lane: Lane
    deadline: float
    """When the gang's wait is over, in seconds."""
    places: dict[str, list[PodInfo]]
    """Node -> the members that are to stand there."""
    priority: int
    """The highest among the members."""

    def is_due(self) -> bool:
        """Whether the gang still is what it was, and waits."""
        known = self.lane.queue.gangs.get(self.gang.rule, self.gang.key)
        return known is self.gang and self.lane.is_served and self.gang.is_complete and self.gang.needed > 0


def placed(core: Core, gang: Gang) -> None:
    """The gang has what it waited for."""
    gang.refused_since = None
    if core.kept_room is not None and core.kept_room.gang is gang:
        end(core)


def review(core: Core) -> None:
    """Give the room up if the gang is gone, or is another one."""
    if core.kept_room is not None and not core.kept_room.is_due():
        end(core)


def refuse_kept(core: Core, kept: KeptRoom, evaluator: Evaluator, pod: PodInfo, diagnosis: Diagnosis) -> Diagnosis:
    """The verdict less the nodes on which the pod would delay the gang. Nor is room to be made there for it."""
    if diagnosis.pre_filter is not None or pod.uid in kept.gang.members or pod.priority > kept.priority:
        return diagnosis
    if ends(pod, core.now) <= kept.deadline:
        return diagnosis
    refusal = Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"node(s) had room kept for gang {kept.gang.rule}",), KEPT_ROOM
    )
    feasible = set(diagnosis.feasible.tolist())
    row_of = core.view.nodes.row_of
    rows = [(row, members) for name, members in kept.places.items() if (row := row_of.get(name)) is not None]
    refused = {
        row: refusal for row, members in rows if row not in feasible or _delays(core, evaluator, pod, row, members)
    }
    return diagnosis.also_refused(refused, first=True) if refused else diagnosis


def _delays(core: Core, evaluator: Evaluator, pod: PodInfo, row: int, members: Sequence[PodInfo]) -> bool:
    """Whether the pod does not fit on the node beside the members that are to come there."""
    nodes = core.view.nodes
    if nodes.pod_count[row] + len(members) >= nodes.allowed_pods[row]:
        return True
    for resource, amount in pod.shape.amounts:
        taken = sum(member.shape.requests.get(resource) for member in members)
        if amount and nodes.requested(resource)[row] + taken + amount > nodes.allocatable(resource)[row]:
            return True
    name = nodes.names[row]
    coming = [(member.uid, name) for member in members if core.view.pods.get(member.uid) is not None]
    coming = [one for one in coming if core.view.pods[one[0]].state is PodState.PENDING]
    with core.view.hypothetically(add=coming) as snapshot:
        return not evaluator.filter_node(pod, snapshot, row).is_success


def ends(pod: PodInfo, now: float) -> float:
    """When the pod will be gone at the latest, were it placed now, or since it was; inf where nobody knows."""
    spec = pod.shape.spec
    if pod.deleting:
        return max(pod.deletion_due, now)
    if spec.active_deadline_seconds is None:
        return inf
    grace = DEFAULT_GRACE if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds
    begun = now if pod.started_at is None else pod.started_at
    return begun + spec.active_deadline_seconds + grace


def end(core: Core) -> None:
    """The room is anybody's again."""
    core.kept_room = None
    tell_the_refused(core)


def tell_the_refused(core: Core) -> None:
    """Those who were refused the room are to look again."""
    for lane in core.lanes:
        lane.queue.room_given_up(core.now)
