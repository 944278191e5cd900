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
from policyengine.cluster.workload_objects import PodGroup, PodGroupStatus
from policyengine.framework.reservation import ObjectPatch
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.core import Core

WRITER = "PodGroupStatus"
"""Who asks for the patch; no plugin, and no decision waits for the answer."""


def note(core: Core, kind: str, key: str) -> None:
    """The group's object changed."""
    if kind == POD_GROUP:
        core.pod_groups.changed.add(key)


def note_pod(core: Core, pod: PodInfo) -> None:
    """A pod came, changed or went."""
    named = named_by(pod)
    if named is not None:
        note(core, *named)


def write(core: Core) -> None:
    """Have the status written of every group for which it is another one now."""
    for key in sorted(core.pod_groups.changed):
        patch = _patch(core, key)
        if patch is not None:
            core.actions.append(patch)
    core.pod_groups.changed.clear()


def _patch(core: Core, key: str) -> PatchObject | None:
    asked, group = core.pod_groups.asked, core.view.objects(PodGroup).get(key)
    if group is None:
        asked.pop(key, None)
        return None
    known = core.view.pod_groups.pods_of(POD_GROUP, key).values()
    pods = [pod for pod in known if (served := core.profile_of(pod)) is not None and served.is_served]
    if not pods:
        return None
    status, version = _status(group, pods), group.metadata.resource_version
    if status == group.status or asked.get(key) == (version, status):
        return None
    asked[key] = (version, status)
    fields = {"phase": status.phase, "scheduled": status.scheduled, "running": status.running}
    metadata = group.metadata
    patch = ObjectPatch(
        POD_GROUP, metadata.namespace, metadata.name, metadata.uid, version, {"status": fields}, subresource="status"
    )
    return PatchObject(uid=metadata.uid, decision=0, plugin=WRITER, patch=patch)


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
