"""The condition PodGroupScheduled of Kubernetes' own PodGroups, in kube-scheduler's words.

| after an attempt | status | reason | message |
|---|---|---|---|
| as many pods as the group takes have a place, and may go there | True | Scheduled | |
| pods of it were refused | False | Unschedulable | `pod group is unschedulable`, and what else is known |
| plugins failed | False | SchedulerError | `failed to schedule other pod from a pod group: `, and the failure |

Rules:
1. Once it is True it stays so: pods that come later, or that go, do not take it back.
2. Nothing is said of a group of whose pods none was tried.
3. `lastTransitionTime` changes with the status alone.

Source: updatePodGroupCondition, schedule_one_podgroup.go, v1.36.
"""

from __future__ import annotations

from policyengine.cluster.objects import format_time
from policyengine.cluster.pod_info import PodInfo, PodState
from policyengine.cluster.workload_objects import Condition, NativePodGroup, NativePodGroupStatus
from policyengine.scheduler.core import Core


def status(core: Core, group: NativePodGroup, known: NativePodGroupStatus, pods: list[PodInfo]) -> NativePodGroupStatus:
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
