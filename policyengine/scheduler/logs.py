"""What a policy has to say of a pod at its extension points, and with its binding.

A line is an action like any other: the core logs nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from policyengine.framework.placed import NO_NODE
from policyengine.scheduler.actions import Log
from policyengine.scheduler.binding.reservation import Reservation
from policyengine.scheduler.core import Core
from policyengine.scheduler.profiles import ProfileRuntime

if TYPE_CHECKING:
    from policyengine.cluster.pod_info import PodInfo


def log(core: Core, runtime: ProfileRuntime, point: str, pod: PodInfo, node: str = NO_NODE) -> None:
    """Say the policy's lines at this point."""
    for rule in runtime.profile.logs:
        if rule.point == point and (line := rule.line(pod, node, core.view.snapshot())) is not None:
            core.actions.append(Log(pod.uid, pod.namespace, pod.name, point, node, line, runtime.policy_hash))


def log_gate(core: Core) -> None:
    """Say what the policies have to say of the pods that came to the gates of their queues."""
    for served in core.profiles:
        for pod in served.queue.take_gate_log():
            log(core, served.runtime, "preEnqueue", pod)


def binding_annotations(core: Core, held: Reservation) -> Mapping[str, str]:
    """What is written on the pod with its binding."""
    rules = held.runtime.profile.annotations
    if not rules:
        return {}
    snapshot = core.view.snapshot()
    return {rule.key: rule.value(held.queued.pod, held.node, snapshot) for rule in rules}
