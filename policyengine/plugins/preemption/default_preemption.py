"""DefaultPreemption: makes room for a pod that fits nowhere by deleting less important pods.

A pod is eligible unless its preemptionPolicy is Never, or a victim still terminates on its nominated node. Candidates
are the nodes refused as Unschedulable that would pass without some pods of lower priority. Quotas, gangs and the
policy's `preempt` limit which pods these are (`preemptible`). `victim_selection` selects the victims of a node, and
`candidate_node` the node. Of equally good nodes the next one on the hash ring after the pod's UID is taken.
Source: plugins/defaultpreemption and framework/preemption of kube-scheduler, v1.36.

Two things differ from kube-scheduler. It looks at all nodes if that is cheap (`victim_arithmetic`), else at the number
that the arguments ask for. And it does not wait for a victim that is still there `OVERDUE` seconds after its deletion
was due: the pod may preempt elsewhere, or loses its nomination. kube-scheduler waits for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import ClusterView
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.events import ClusterEventWithHint
from policyengine.framework.filtering import Diagnosis, fit_error_message
from policyengine.framework.plugin_entry import schema_of
from policyengine.framework.post_filter import PostFilterResult
from policyengine.framework.profile import Profile
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.plugins.preemption.candidate_node import Candidate
from policyengine.plugins.preemption.dry_run import DryRun, best_of
from policyengine.plugins.preemption.preemptible import Preemptible

OVERDUE: Final = 60.0
"""Seconds past a pod's deletion time (the grace period included) after which it is not expected to go."""

NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
UNHELPFUL: Final = "Preemption is not helpful for scheduling"
NOBODY: Final = "no candidate node for preemption"

Victims = Mapping[str, tuple[Collection[str], int]]
"""Node -> (UIDs of the victims, how many of them break a disruption budget)."""


class DefaultPreemption:
    """Reads priorities, start times, disruption budgets, and whatever the profile's filters read."""

    name = "DefaultPreemption"
    kinds = ("PodDisruptionBudget",)
    arguments: Final = schema_of(
        minCandidateNodesPercentage={"type": "integer", "minimum": 0, "maximum": 100},
        minCandidateNodesAbsolute={"type": "integer", "minimum": 0},
    )

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        """DefaultPreemptionArgs. ValueError where both minima are 0."""
        arguments = arguments or {}
        self._percentage = int(arguments.get("minCandidateNodesPercentage", 10))
        self._absolute = int(arguments.get("minCandidateNodesAbsolute", 100))
        if self._percentage == 0 and self._absolute == 0:
            raise ValueError("`minCandidateNodesPercentage` and `minCandidateNodesAbsolute` cannot both be 0")

    def post_filter(
        self, pod: PodInfo, diagnosis: Diagnosis, evaluator: Evaluator, view: ClusterView
    ) -> PostFilterResult:
        """The node on which room can be made and the victims, or why there is none."""
        why = self.why_not_eligible(pod, diagnosis, evaluator, view)
        if why:
            return PostFilterResult(_refused(why))
        dry_run = DryRun(pod, diagnosis, evaluator, view, self._enough(diagnosis), view.now - OVERDUE)
        chosen = dry_run.best()
        if chosen is None:
            counts = Counter(dict(dry_run.refusals()))
            counts[UNHELPFUL] += view.nodes.n - len(diagnosis.rows_with(Code.UNSCHEDULABLE))
            message = fit_error_message(view.nodes.n, [(reason, n) for reason, n in counts.items() if n])
            return PostFilterResult(_refused(message), nominated_node_name="")
        return PostFilterResult(SUCCESS, view.nodes.names[chosen.row], chosen.victims, chosen.why)

    def candidates(
        self, pod: PodInfo, diagnosis: Diagnosis, evaluator: Evaluator, view: ClusterView
    ) -> list[Candidate]:
        """Those that extenders are asked about: as many as the arguments ask for."""
        enough = self._enough(diagnosis)
        return DryRun(pod, diagnosis, evaluator, view, enough, view.now - OVERDUE).some(enough)

    def chosen(
        self, pod: PodInfo, diagnosis: Diagnosis, evaluator: Evaluator, view: ClusterView, victims: Victims
    ) -> PostFilterResult:
        """The best of what extenders left: the victims they chose and how many budgets these break, by node.

        A node that is no candidate any more is passed over, and so is one on which somebody is named who may not be
        made to go; who has gone by himself need not. An earlier nomination stays where none is left.
        """
        why = self.why_not_eligible(pod, diagnosis, evaluator, view)
        if why:
            return PostFilterResult(_refused(why))
        preemptible = Preemptible(pod, evaluator.profile, view)
        candidates = [
            Candidate(row, going, violations)
            for name, (uids, violations) in victims.items()
            if (row := view.nodes.row_of.get(name)) is not None
            and diagnosis.refusal(row).code is Code.UNSCHEDULABLE
            and (going := preemptible.with_mates(row, {uid for uid in uids if uid in view.pods}))
        ]
        if not candidates:
            return PostFilterResult(_refused(NOBODY))
        best = best_of(pod, candidates, view)
        return PostFilterResult(SUCCESS, view.nodes.names[best.row], best.victims, best.why)

    def _enough(self, diagnosis: Diagnosis) -> int:
        """Candidates after which no more are needed."""
        return max(self._absolute, len(diagnosis.rows_with(Code.UNSCHEDULABLE)) * self._percentage // 100)

    def why_not_eligible(self, pod: PodInfo, diagnosis: Diagnosis, evaluator: Evaluator, view: ClusterView) -> str:
        """Why the pod may not preempt others; empty where it may."""
        if pod.shape.spec.preemption_policy == "Never":
            return NEVER
        row = view.nodes.row_of.get(pod.nominated_node_name)
        if row is None or diagnosis.refusal(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        return TERMINATING if self.awaits_victims(pod, evaluator.profile, view) else ""

    def awaits_victims(self, pod: PodInfo, profile: Profile, view: ClusterView) -> bool:
        """Whether a pod that it may preempt is going from the node that the pod is nominated to, and expected to."""
        row = view.nodes.row_of.get(pod.nominated_node_name)
        placed = () if row is None else view.nodes.pods_on(row).values()
        going = [other for other in placed if _is_awaited(other, view.now - OVERDUE)]
        return bool(going) and any(map(Preemptible(pod, profile, view).may_await, going))

    def all_candidates(
        self, pod: PodInfo, diagnosis: Diagnosis, evaluator: Evaluator, view: ClusterView
    ) -> tuple[list[Candidate], Candidate | None]:
        """Every node that is a candidate, by name, and the one that would be taken: for `explain`."""
        dry_run = DryRun(pod, diagnosis, evaluator, view, view.nodes.n, view.now - OVERDUE)
        names = view.nodes.names
        return sorted(dry_run.all(), key=lambda one: names[one.row]), dry_run.best()

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """None: the filters that refused the pod know what helps it, the victims' leaving among it."""
        return ()


def _refused(why: str) -> Status:
    return Status(Code.UNSCHEDULABLE, (f"preemption: {why}",))


def _is_awaited(pod: PodInfo, overdue: float) -> bool:
    """Whether the pod is going because a scheduler wanted its room, and may be expected to go."""
    if not pod.deleting or pod.deletion_due < overdue:
        return False
    reasons = [(one.status, one.reason) for one in pod.conditions if one.type == "DisruptionTarget"]
    return reasons[:1] == [("True", "PreemptionByScheduler")]
