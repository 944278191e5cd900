"""A placement that cannot be kept: refused, or failed, somewhere between Reserve and Bind."""

from __future__ import annotations

from policyengine.framework.fit_error import fit_error_message
from policyengine.framework.status import Code, Status
from policyengine.scheduler import conditions_and_events
from policyengine.scheduler.binding.reservation import Reservation
from policyengine.scheduler.core import Core
from policyengine.scheduler.queue.queued_pod import NO_PLUGINS


def undo(core: Core, held: Reservation, status: Status, point: str) -> None:
    """Give the reservation back and have the pod try again later. `point` is where it was refused."""
    lane, queued = held.lane, held.queued
    core.release(held, status.message)
    if status.is_rejection:
        plugins = frozenset({status.plugin})
        pending = plugins if status.code is Code.PENDING else NO_PLUGINS
        message = fit_error_message(1, [(reason, 1) for reason in status.reasons])
        core.fail(lane, queued, conditions_and_events.UNSCHEDULABLE, message, plugins, pending)
    else:
        message = f'running {point} plugin "{status.plugin}": {status.message}'
        core.fail(lane, queued, conditions_and_events.SCHEDULER_ERROR, message)


def failed_with(failure: Exception) -> Status:
    """A plugin that raised, as the status it should have answered with."""
    return Status(Code.ERROR, (str(failure) or type(failure).__name__,))
