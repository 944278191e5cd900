"""The status of PodGroups, written back. Of scheduler-plugins' groups: how far the pods of each have come.

| phase | when |
|---|---|
| `Pending` | fewer than `minMember` pods exist |
| `Scheduling` | enough exist, and not enough are bound |
| `Scheduled` | `minMember` are bound |
| `Running` | `minMember` run |

`scheduled` counts the bound pods, `running` those in phase Running. Finished pods are not followed, so a group whose
pods are all gone keeps its last status. Of Kubernetes' own groups it is a condition (`pod_group_condition`). The patch
names the version it was made for: where it is refused, or lost, the next change of the group has it made again.
"""

from __future__ import annotations

from typing import cast

import msgspec

from policyengine.cluster.pod_groups import named_by
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.workload_objects import NativePodGroup, NativePodGroupStatus, PodGroup, PodGroupStatus
from policyengine.framework.reservation import ObjectPatch
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.core import Core
from policyengine.scheduler.gangs import pod_group_condition

WRITER = "PodGroupStatus"
"""Who asks for the patch; no plugin, and no decision waits for the answer."""


def note(core: Core, kind: str, key: str) -> None:
    """The group's object changed."""
    core.pod_groups.changed.add((kind, key))


def note_pod(core: Core, pod: PodInfo) -> None:
    """A pod came, changed or went."""
    named = named_by(pod)
    if named is not None:
        note(core, *named)


def write(core: Core) -> None:
    """Have the status written of every group for which it is another one now."""
    for kind, key in sorted(core.pod_groups.changed, key=lambda one: (one[0], core.view.nodes.known_as(one[1]))):
        patch = _patch(core, kind, key)
        if patch is not None:
            core.actions.append(patch)
    core.pod_groups.changed.clear()


def not_written(core: Core, asked: PatchObject) -> None:
    """A patch was refused, or lost: the next change of the group has it made again."""
    core.pod_groups.asked.pop((asked.patch.kind, asked.patch.key), None)


def _patch(core: Core, kind: str, key: str) -> PatchObject | None:
    asked = core.pod_groups.asked
    group = cast(PodGroup | NativePodGroup | None, core.view.objects_of(kind).get(key))
    if group is None:
        core.pod_groups.forget(kind, key)
        return None
    known = core.view.pod_groups.pods_of(kind, key).values()
    pods = [pod for pod in known if (served := core.profile_of(pod)) is not None and served.is_served]
    if not pods:
        return None
    metadata, version = group.metadata, group.metadata.resource_version
    of_version, written = asked.get((kind, key), ("", None))
    if of_version != version or written is None:
        written = group.status
    status: PodGroupStatus | NativePodGroupStatus
    if isinstance(group, NativePodGroup):
        status = pod_group_condition.status(core, group, written, pods)
    else:
        status = _status(group, pods)
    if status == written:
        return None
    asked[kind, key] = (version, status)
    fields = {"status": _fields(status)}
    patch = ObjectPatch(kind, metadata.namespace, metadata.name, metadata.uid, version, fields, subresource="status")
    return PatchObject(uid=metadata.uid, decision=0, plugin=WRITER, patch=patch)


def _fields(status: PodGroupStatus | NativePodGroupStatus) -> object:
    """As it is written: of scheduler-plugins' status the zeros too, which may have been other numbers."""
    if isinstance(status, PodGroupStatus):
        return {"phase": status.phase, "scheduled": status.scheduled, "running": status.running}
    return msgspec.to_builtins(status)


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
