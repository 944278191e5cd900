"""What a pod counts in: its tenant, its quotas, its gang and its workload.

Both runs are counted by the same rules: those of the new policies, and what only the old ones have. So a quota that is
new shows what its pods used before there was one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.pod_objects import Pod
from policyengine.framework.profile import FairShare, GangRule, Profile
from policyengine.framework.quota import QuotaRule

if TYPE_CHECKING:
    from policyengine.trials.play import Play


@dataclass(frozen=True, slots=True)
class Member:
    """One pod's."""

    tenant: str | None = None
    """None where no policy serves tenants."""
    weight: float = 1.0
    """The tenant's."""
    quotas: tuple[tuple[str, Mapping[str, int]], ...] = ()
    """The names of its quotas; what each guarantees, else limits, by resource."""
    gang: tuple[str, str] | None = None
    """The rule, and its key for the pod."""
    minimum: int = 0
    """Members that the pod says its gang takes."""
    workload: str = ""
    """The UID of its controller; "" where it has none."""


NOBODY: Final = Member()


class Memberships:
    """Of pods, as they were bound, ended, or stood at the end."""

    def __init__(self, before: Sequence[Profile], after: Sequence[Profile]) -> None:
        """The profiles of both sides."""
        served = [*after, *before]
        self._fair: dict[str, FairShare] = {}
        self._gangs: dict[str, tuple[GangRule, ...]] = {}
        self._quotas: dict[str, dict[str, QuotaRule]] = {}
        for profile in served:
            if profile.fair is not None:
                self._fair.setdefault(profile.scheduler_name, profile.fair)
            if profile.gangs:
                self._gangs.setdefault(profile.scheduler_name, profile.gangs)
            for rule in profile.quotas.rules:
                self._quotas.setdefault(profile.scheduler_name, {}).setdefault(rule.name, rule)

    def of(self, pod: PodInfo) -> Member:
        """What the pod counts in. A rule that fails for it counts it nowhere, as in the scheduler."""
        name = pod.scheduler_name
        fair, owner = self._fair.get(name), pod.owner
        gang, minimum = self._gang(pod)
        tenant = None if fair is None else fair.tenant(pod)
        return Member(
            tenant,
            1.0 if fair is None or tenant is None else fair.weights.get(tenant, 1.0),
            tuple(
                (quota.name, {**quota.limit, **quota.guarantee})
                for rule in self._quotas.get(name, {}).values()
                if (quota := rule.of(pod)) is not None
            ),
            gang,
            minimum,
            "" if owner is None else owner.uid,
        )

    def _gang(self, pod: PodInfo) -> tuple[tuple[str, str] | None, int]:
        try:
            for rule in self._gangs.get(pod.scheduler_name, ()):
                key = rule.key(pod)
                if key is not None:
                    return (rule.name, key), max(1, rule.minimum(pod))
        except Exception:  # the scheduler holds such a pod and says why
            pass
        return None, 0


class Watching:
    """Takes down, while a run goes on, what its pods count in. Made before the run; `play` is set once there is one."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships
        self.play: Play | None = None
        self.members: dict[str, Member] = {}
        """By the UIDs of pods."""
        self._as_made: dict[str, Pod] = {}
        """By UID, those that were not taken down yet."""

    def __call__(self, at: float, what: str, details: Mapping[str, Any]) -> None:
        """As `play.Watch` is told."""
        if what == "pod":
            self._as_made[details["pod"].metadata.uid] = details["pod"]
        elif what in ("bound", "ended"):
            self._take(details["uid"])

    def finish(self) -> None:
        """The run is over: take down those that still wait."""
        if self.play is not None:
            for uid in self.play.ledger.pods:
                self._take(uid)

    def _take(self, uid: str) -> None:
        if uid not in self.members and self.play is not None:
            view, made = self.play.trial.state.view, self._as_made.pop(uid, None)
            pod = view.pods.get(uid)
            if pod is None and made is not None:  # it came and went before anybody was told of it
                pod = PodInfo(made)
                view.related.tell(pod)
            if pod is not None:
                self.members[uid] = self._memberships.of(pod)
