"""The status of scheduler-plugins' PodGroups, written back: how far the pods of each have come.

| phase | when |
|---|---|
| `Pending` | fewer than `minMember` pods exist |
| `Scheduling` | enough exist, and not enough are bound |
| `Scheduled` | `minMember` are bound |
| `Running` | `minMember` run |

`scheduled` counts the bound pods, `running` those in phase Running. Finished pods are not followed, so a group whose
pods are all gone keeps its last status. Kubernetes' own PodGroups have a controller for that. The patch names the
version it was made for: where it is refused, or lost, the next change of the group has it made again.
"""

from __future__ import annotations

from policyengine.cluster.pod_groups import POD_GROUP, named_by
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.view import ClusterView
from policyengine.cluster.workload_objects import PodGroup, PodGroupStatus
from policyengine.framework.reservation import ObjectPatch
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.profiles import ServedProfiles

WRITER = "PodGroupStatus"
"""Who asks for the patch; no plugin, and no decision waits for the answer."""


class PodGroupStatuses:
    """Which groups are to be looked at, and what was last asked to be written of each."""

    def __init__(self) -> None:
        self.changed: set[str] = set()
        """Keys of the groups that are to be looked at."""
        self._asked: dict[str, tuple[str, PodGroupStatus]] = {}
        """Key -> the version and the status of the last patch."""

    def note(self, kind: str, key: str) -> None:
        """The group's object changed."""
        if kind == POD_GROUP:
            self.changed.add(key)

    def note_pod(self, pod: PodInfo) -> None:
        """A pod came, changed or went."""
        named = named_by(pod)
        if named is not None:
            self.note(*named)

    def take(self, view: ClusterView, profiles: ServedProfiles) -> list[PatchObject]:
        """What is to be written now."""
        taken = sorted(self.changed)
        self.changed.clear()
        patches = [self._patch(view, profiles, key) for key in taken]
        return [patch for patch in patches if patch is not None]

    def _patch(self, view: ClusterView, profiles: ServedProfiles, key: str) -> PatchObject | None:
        group = view.objects(POD_GROUP).get(key)
        if not isinstance(group, PodGroup):
            self._asked.pop(key, None)
            return None
        pods = [pod for pod in view.pod_groups.pods_of(POD_GROUP, key).values() if _is_served(pod, profiles)]
        if not pods:
            return None
        status, version = _status(group, pods), group.metadata.resource_version
        if status == group.status or self._asked.get(key) == (version, status):
            return None
        self._asked[key] = (version, status)
        fields = {"phase": status.phase, "scheduled": status.scheduled, "running": status.running}
        patch = ObjectPatch(
            POD_GROUP,
            group.metadata.namespace,
            group.metadata.name,
            group.metadata.uid,
            version,
            {"status": fields},
            subresource="status",
        )
        return PatchObject(uid=group.metadata.uid, decision=0, plugin=WRITER, patch=patch)


def _is_served(pod: PodInfo, profiles: ServedProfiles) -> bool:
    served = profiles.get(pod.scheduler_name)
    return served is not None and served.is_served


def _status(group: PodGroup, pods: list[PodInfo]) -> PodGroupStatus:
    bound = sum(pod.state is PodState.BOUND for pod in pods)
    running = sum(pod.phase == "Running" for pod in pods)
    least = max(1, group.spec.min_member)
    if len(pods) < least:
        phase = "Pending"
    elif running >= least:
        phase = "Running"
    else:
        phase = "Scheduled" if bound >= least else "Scheduling"
    return PodGroupStatus(phase, bound, running)
