"""Room reserved for one gang while nodes drain (`waits` of a gang rule), as in Slurm's backfill.

A gang that is refused, but would fit if running pods went, has nodes chosen for it (`node_choice`). From then on
another pod may use them only if it does not delay the gang:
- it fits there beside the gang's members, as if they stood there already; or
- it is sure to be gone in time: its `activeDeadlineSeconds` and its grace period end before the gang's wait does; or
- it is more important than every member (`priority`).

Rules:
1. Room is reserved for one gang at a time: the first that is refused while none is reserved. So two gangs never wait
   for each other's room.
2. The reservation ends when the gang is placed, has too few members, changes, or fits nowhere any more. Then the pods
   that were refused the room are tried again.
3. The gang's wait counts from its first refusal. After it no pod passes the gang any more by its known end.

Example: a gang of two that need 4 cpu each is refused at 100 s and waits 600 s. n1 and n2 (4 cpu each) are reserved. A
pod of 1 cpu with `activeDeadlineSeconds: 300` may use n1 until 370 s (300 s and 30 s of grace end before 700 s); the
same pod without a deadline may not: beside a member it does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.status import Code, Status
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.queue.queueing_hints import RESERVED_ROOM

DEFAULT_GRACE = 30
"""Seconds; `terminationGracePeriodSeconds` of a pod that does not say."""


@dataclass(slots=True, eq=False)
class ReservedRoom:
    """Where a gang is to be placed."""

    gang: Gang
    served: ServedProfile
    deadline: float
    """When the gang's wait is over, in seconds."""
    members_on: dict[str, list[PodInfo]]
    """Node -> the members that are to stand there."""
    priority: int
    """The highest among the members."""

    def is_due(self) -> bool:
        """Whether the gang still is what it was, and waits."""
        known = self.served.queue.gangs.get(self.gang.rule, self.gang.key)
        return known is self.gang and self.served.is_served and self.gang.is_complete and self.gang.needed > 0

    def refuse(self, view: ClusterView, now: float, evaluator: Evaluator, pod: PodInfo, found: Diagnosis) -> Diagnosis:
        """The diagnosis less the nodes on which the pod would delay the gang. Nor is room to be made there for it."""
        if found.pre_filter is not None or pod.uid in self.gang.members or pod.priority > self.priority:
            return found
        if ends(pod, now) <= self.deadline:
            return found
        reason = f"node(s) had room kept for gang {self.gang.rule}"
        refusal = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), RESERVED_ROOM)
        feasible, row_of = set(found.feasible.tolist()), view.nodes.row_of
        rows = [(row, members) for name, members in self.members_on.items() if (row := row_of.get(name)) is not None]
        refused = {
            row: refusal for row, members in rows if row not in feasible or _delays(view, evaluator, pod, row, members)
        }
        return found.also_refused(refused, first=True) if refused else found


def _delays(view: ClusterView, evaluator: Evaluator, pod: PodInfo, row: int, members: Sequence[PodInfo]) -> bool:
    """Whether the pod does not fit on the node beside the members that are to come there."""
    nodes = view.nodes
    if nodes.pod_count[row] + len(members) >= nodes.allowed_pods[row]:
        return True
    for resource, amount in pod.shape.amounts:
        taken = sum(member.shape.requests.get(resource) for member in members)
        if amount and nodes.requested(resource)[row] + taken + amount > nodes.allocatable(resource)[row]:
            return True
    known = [view.pods.get(member.uid) for member in members]
    coming = [(one.uid, nodes.names[row]) for one in known if one is not None and one.state is PodState.PENDING]
    with view.hypothetically(add=coming) as snapshot:
        return not evaluator.filter_node(pod, snapshot, row).is_success


def ends(pod: PodInfo, now: float) -> float:
    """When the pod will be gone at the latest, were it placed now, or since it was; inf if unknown."""
    spec = pod.shape.spec
    if pod.deleting:
        return max(pod.deletion_due, now)
    if spec.active_deadline_seconds is None:
        return inf
    grace = DEFAULT_GRACE if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds
    begun = now if pod.started_at is None else pod.started_at
    return begun + spec.active_deadline_seconds + grace
