"""From a reservation to a binding: Permit, waiting for the other members of the gang, then PreBind and Bind.

A reserved member of a gang waits here, as at Permit, until enough of its gang have come as far (`gang_release`).
"""

from __future__ import annotations

from math import inf

from policyengine.framework.events import MINUTE_PASSED
from policyengine.framework.reservation import MAX_PERMIT_WAIT, Permission
from policyengine.framework.status import Code, Status
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.binding import prebind
from policyengine.scheduler.binding.bindings import Decision
from policyengine.scheduler.binding.reservation import Reservation, failed_with
from policyengine.scheduler.binding.waiting_pods import WaitingPod, next_minute
from policyengine.scheduler.core import Core
from policyengine.scheduler.extenders.consult import binder
from policyengine.scheduler.gangs.gang import Gang
from policyengine.scheduler.logs import binding_annotations, log


def ask_permit(core: Core, held: Reservation, again: bool = False) -> None:
    """Bind a reserved pod if every Permit plugin lets it go; have it wait, or refuse it, if one does not. `again`: it
    was asked for before."""
    pod = held.queued.pod
    if not again and held.runtime.has_logs:
        log(core, held.runtime, "permit", pod, held.node)
    waits: list[tuple[float, str]] = []
    ask_at = inf
    for plugin in held.runtime.permit:
        try:
            answer = plugin.permit(pod, held.node, core.view.snapshot(), core.now - held.since)
        except Exception as failure:
            answer = Permission(failed_with(failure))
        status = answer.status
        if status.code is Code.WAIT:
            waits.append((held.since + min(answer.timeout, MAX_PERMIT_WAIT), plugin.name))
            if answer.ask_in is not None:
                ask_at = min(ask_at, core.now + answer.ask_in)
        elif not status.is_success and not status.is_skip:
            core.reject(held, status.by(plugin.name), "Permit")
            return
    gang = held.served.queue.gangs.of(pod.uid)
    if gang is not None and gang.minimum > 1:
        _await_the_gang(core, held, gang, waits, ask_at)
    elif waits:
        _wait(core, held, waits, ask_at)
    else:
        bind(core, held)


def time_out(core: Core, waiting: WaitingPod) -> None:
    """The pod has waited at Permit for as long as its plugins, or its gang, allowed."""
    waited = waiting.deadline - waiting.held.since
    reason = f"rejected due to timeout after waiting {waited:g}s at plugin {waiting.plugin}"
    core.reject(waiting.held, Status(Code.UNSCHEDULABLE, (reason,), waiting.plugin), "Permit")


def bind(core: Core, held: Reservation, awaits_gang: bool = False) -> None:
    """The pod may go: what is left is to prepare and to post its binding, which `awaits_gang` puts off until the gang's
    are posted."""
    pod = held.queued.pod
    held.served.queue.remove(pod.uid)
    held.queued.said = None  # what is not written yet is dropped before a binding, and so may have to be said again
    try:
        said = binding_annotations(core, held)
    except Exception as failure:
        core.reject(held, failed_with(failure), "Bind")
        return
    decision = Decision(
        held,
        Bind(pod.uid, pod.namespace, pod.name, held.node, held.runtime.policy_hash, said, binder(core, pod)),
        core.now,
    )
    decision.awaits_gang = awaits_gang and decision.preparation is not None
    prebind.begin(core, decision)


def _await_the_gang(core: Core, held: Reservation, gang: Gang, waits: list[tuple[float, str]], ask_at: float) -> None:
    """Let the pod wait until the other members may go too, for no longer than the gang's timeout."""
    end = (held.since + gang.timeout, gang.rule)
    if waits:
        _wait(core, held, [*waits, end], ask_at)
    else:
        core.waiting_pods.add(WaitingPod(held, end[1], (), end[0], is_permitted=True))
    held.served.queue.gangs.mark_changed(held.queued.uid)


def _wait(core: Core, held: Reservation, waits: list[tuple[float, str]], ask_at: float) -> None:
    deadline, name = min(waits)
    asked = {plugin for _, plugin in waits}
    waiters = [plugin for plugin in held.runtime.permit if plugin.name in asked]
    events = [registered.event for plugin in waiters for registered in plugin.events_to_register()]
    if any(event.matches(MINUTE_PASSED) for event in events):
        ask_at = min(ask_at, next_minute(core.now))
    core.waiting_pods.add(WaitingPod(held, name, tuple(events), deadline, ask_at))
    core.timeline.record(held.queued.uid, core.now, "waiting", name, deadline - core.now)
