"""A node's room taken for a pod that is not bound yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from policyengine.framework.reservation import Plan, PreBindPlugin
from policyengine.framework.status import Code, Status
from policyengine.scheduler.profiles import ProfileRuntime, ServedProfile
from policyengine.scheduler.queue.queued_pod import QueuedPod


@dataclass(slots=True, eq=False)
class Reservation:
    """What one decision holds until it is bound or given up.

    `runtime` is the policy that decided; a policy loaded meanwhile has no part in it.
    """

    queued: QueuedPod
    served: ServedProfile
    node: str
    runtime: ProfileRuntime
    since: float
    """When the decision was made, in seconds."""
    plans: list[tuple[PreBindPlugin, Plan]] = field(default_factory=list)
    """What the PreBind plugins have to do first; what they assume is assumed in the view."""


def failed_with(failure: Exception) -> Status:
    """A plugin that raised, as the status it should have answered with."""
    return Status(Code.ERROR, (str(failure) or type(failure).__name__,))
