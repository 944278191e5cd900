"""The status of PodGroups, written back. Of scheduler-plugins' groups: how far the pods of each have come.

| phase | when |
|---|---|
| `Finished` | `minMember` have succeeded |
| `Failed` | one has failed, and with those that run or have succeeded they are `minMember` |
| `Pending` | fewer than `minMember` pods exist |
| `Running` | `minMember` run, or have succeeded |
| `Scheduled` | `minMember` are bound |
| `Scheduling` | enough exist, and not enough are bound |

The first that holds is written; Finished and Failed stay, whatever becomes of the pods (podgroup_controller.go,
scheduler-plugins v0.31). `scheduled` counts the pods with a node, finished ones too, `running`, `succeeded` and
`failed` those in that phase. A group whose pods are all deleted keeps its last status.

The patch names the version it was made for: where it is refused, or lost, the next change of the group has it made
again.

Of Kubernetes' own groups it is the condition PodGroupScheduled, in kube-scheduler's words (updatePodGroupCondition,
schedule_one_podgroup.go, v1.36).

| after an attempt | status | reason | message |
|---|---|---|---|
| as many pods as the group takes have a place, and may go there | True | Scheduled | |
| pods of it were refused | False | Unschedulable | `pod group is unschedulable`, and what else is known |
| plugins failed | False | SchedulerError | `failed to schedule other pod from a pod group: `, and the failure |

Once it is True it stays so: pods that come later, or that go, do not take it back. Nothing is said of a group of whose
pods none was tried. `lastTransitionTime` changes with the status alone.
"""

from __future__ import annotations

from typing import Final, cast

import msgspec

from policyengine.cluster.kinds import GROUP_LABEL
from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_groups import POD_GROUP
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.pod_objects import Pod
from policyengine.cluster.workload_objects import (
    Condition,
    NativePodGroup,
    NativePodGroupStatus,
    PodGroup,
    PodGroupStatus,
)
from policyengine.framework.reservation import ObjectPatch
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.core import Core

WRITER = "PodGroupStatus"
"""Who asks for the patch; no plugin, and no decision waits for the answer."""
_FINISHED, _FAILED = "Finished", "Failed"
_LAST: Final = (_FINISHED, _FAILED)


def note(core: Core, kind: str, key: str) -> None:
    """The group's object changed."""
    core.pod_groups.changed.add((kind, key))


def note_phase(core: Core, pod: Pod) -> None:
    """A pod was seen: its group counts it where it has finished, and not where an older copy has it run again."""
    name = pod.metadata.labels.get(GROUP_LABEL)
    if not name or core.profiles.get(pod.spec.scheduler_name) is None:
        return
    key, uid, phase = f"{pod.metadata.namespace}/{name}", pod.metadata.uid, pod.status.phase
    ended = core.pod_groups.ended
    if phase in ("Succeeded", "Failed"):
        if core.is_synced and key not in core.view.objects_of(POD_GROUP):
            return
        ended.setdefault(key, {})[uid] = phase
    elif ended.get(key, {}).pop(uid, None) is None:
        return
    note(core, POD_GROUP, key)


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
    known = core.view.related.of(kind, key).values()
    pods = [pod for pod in known if (served := core.profile_of(pod)) is not None and served.is_served]
    ended = list(core.pod_groups.ended.get(key, {}).values()) if kind == POD_GROUP else []
    if not pods and not ended:
        return None
    metadata, version = group.metadata, group.metadata.resource_version
    of_version, written = asked.get((kind, key), ("", None))
    if of_version != version or written is None:
        written = group.status
    status: PodGroupStatus | NativePodGroupStatus
    if isinstance(written, PodGroupStatus) and written.phase in _LAST:
        core.pod_groups.ended.pop(key, None)
        return None
    if isinstance(group, NativePodGroup):
        status = _with_condition(core, group, written, pods)
    else:
        status = _status(group, pods, ended)
    if status == written:
        return None
    asked[kind, key] = (version, status)
    fields = {"status": _fields(status)}
    patch = ObjectPatch(kind, metadata.namespace, metadata.name, metadata.uid, version, fields, subresource="status")
    return PatchObject(uid=metadata.uid, decision=0, plugin=WRITER, patch=patch)


def _fields(status: PodGroupStatus | NativePodGroupStatus) -> object:
    """As it is written: of scheduler-plugins' status the zeros too, which may have been other numbers."""
    if isinstance(status, PodGroupStatus):
        return msgspec.structs.asdict(status)
    return msgspec.to_builtins(status)


def _status(group: PodGroup, pods: list[PodInfo], ended: list[str]) -> PodGroupStatus:
    """`ended`: the phases of the pods that have finished."""
    phases = [pod.phase for pod in pods] + ended
    bound = sum(pod.state is PodState.BOUND for pod in pods) + len(ended)
    running, succeeded, failed = (phases.count(one) for one in ("Running", "Succeeded", "Failed"))
    least = max(1, group.spec.min_member)
    if succeeded >= least:
        phase = _FINISHED
    elif failed and failed + running + succeeded >= least:
        phase = _FAILED
    elif len(phases) < least:
        phase = "Pending"
    elif running + succeeded >= least:
        phase = "Running"
    else:
        phase = "Scheduled" if bound >= least else "Scheduling"
    return PodGroupStatus(phase, bound, running, succeeded, failed)


def _with_condition(
    core: Core, group: NativePodGroup, known: NativePodGroupStatus, pods: list[PodInfo]
) -> NativePodGroupStatus:
    """The group's status as it should be; `known`: as it is, or was asked to be."""
    before = next((one for one in known.conditions if one.type == group.SCHEDULED), Condition())
    refusal = core.pod_groups.refused.get(group.metadata.key)
    if before.status == "True":
        return known
    if sum(_has_place(core, pod) for pod in pods) >= group.minimum:
        said = ("True", "Scheduled", "")
    elif refusal is not None:
        said = ("False", *refusal)
    else:
        return known
    since = before.last_transition_time if before.status == said[0] else format_time(core.now)
    condition = Condition(group.SCHEDULED, *said, since, group.metadata.generation)
    others = tuple(one for one in known.conditions if one.type != group.SCHEDULED)
    return NativePodGroupStatus((*others, condition))


def _has_place(core: Core, pod: PodInfo) -> bool:
    waiting = core.waiting_pods.get(pod.uid)
    return pod.state is not PodState.PENDING and (waiting is None or waiting.is_permitted)
