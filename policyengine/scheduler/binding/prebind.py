"""PreBind: what has to be true of other objects before a pod's binding is posted.

| what happens | the reservation | the pod |
|---|---|---|
| a patch is made | stays | the plan's next patch is sent |
| all patches are made and seen, every plugin says SUCCESS | stays | its binding is posted |
| a plugin says WAIT | stays | asked again when an object of the plugin's kinds changes |
| a plugin refuses or fails, its time is up, a patch is refused | given up | error backoff; event and condition |
| the server is overloaded or out of reach | given up | error backoff, at least Retry-After; nobody is told |

What was written stays written, unless its patch says how it is taken back, as with kube-scheduler: the next attempt
finds it and goes on from there. A request
whose answer was lost may still land; it names the version it was made for, or is refused once something else was
decided, so that it changes nothing that was decided since.
"""

from __future__ import annotations

from policyengine.framework.status import Code, Status
from policyengine.scheduler.actions import POST_FILTERED, PatchObject
from policyengine.scheduler.binding.bind_result import fail_quietly
from policyengine.scheduler.conditions_and_events import announced
from policyengine.scheduler.core import Core, failed_with
from policyengine.scheduler.messages import BindFailure, ObjectPatched, ObjectPatchFailed
from policyengine.scheduler.reservations import Decision, Phase, Step


def begin(core: Core, decision: Decision, awaits_gang: bool) -> None:
    """The pod is reserved and permitted: do what its plans ask for, then bind it; `awaits_gang`: with its gang."""
    decision.steps = tuple(Step(plugin, plan, core.now) for plugin, plan in decision.held.plans)
    decision.awaits_gang = awaits_gang
    core.bindings.prepare(decision)
    for step in decision.steps:
        core.timeline.record(decision.bind.uid, core.now, "preparing", step.plugin.name, step.plan.timeout)
        _send_next(core, decision, step)
    _ask(core, decision)


def post(core: Core, decision: Decision) -> None:
    """All is prepared: bind the pod."""
    decision.awaits_gang = False
    core.view.revert_objects(decision.bind.uid)  # what is observed says the same by now
    core.bindings.post(decision)
    core.actions.append(decision.bind)


def object_patched(core: Core, message: ObjectPatched) -> None:
    """A patch is made."""
    decision = _asked_by(core, message.asked)
    if decision is None:
        if message.asked.decision == POST_FILTERED and message.asked.patch.verb == "DELETE":
            core.try_again(message.asked.uid, "ObjectDeleted", core.now)  # no plugin waits for that
        return
    patch = message.asked.patch
    core.timeline.record(message.asked.uid, core.now, "written", patch.kind, patch.key)
    step = next(step for step in decision.steps if step.plugin.name == message.asked.plugin)
    step.patched(message.resource_version)
    decision.held.made.append(patch)
    _send_next(core, decision, step)
    _ask(core, decision)


def object_patch_failed(core: Core, message: ObjectPatchFailed) -> None:
    """A patch is not made, or nobody knows."""
    decision = _asked_by(core, message.asked)
    if decision is None:
        if message.asked.decision == POST_FILTERED:
            core.try_again(message.asked.uid, "PostFilterFailed", core.now + message.retry_after)
        return
    if message.failure is BindFailure.OVERLOADED:
        core.bindings.end(decision.bind.uid)
        core.release(decision.held, message.message)
        fail_quietly(core, decision, message.message, message.retry_after)
    else:
        _give_up(core, decision, Status(Code.ERROR, (message.message,), message.asked.plugin))


def ask_again(core: Core, decision: Decision) -> None:
    """Something has changed for the pod, or its time is up, which ends it."""
    late = next((step for step in decision.open_steps() if step.deadline <= core.now), None)
    _ask(core, decision)
    if late is not None and decision.phase is Phase.PREPARING and decision.bind.uid in core.bindings:
        _give_up(core, decision, Status(Code.ERROR, (late.plan.on_timeout,), late.plugin.name))


def _asked_by(core: Core, asked: PatchObject) -> Decision | None:
    """The decision the patch belongs to, unless it came to nothing meanwhile."""
    decision = core.bindings.get(asked.uid)
    return decision if decision is not None and decision.number == asked.decision else None


def _send_next(core: Core, decision: Decision, step: Step) -> None:
    patch = step.next_patch()
    if patch is not None:
        at = core.view.pending_claims.written_at(patch.uid, core.now) if patch.stamped else core.now
        sent = patch.sent_at(at)
        core.actions.append(PatchObject(decision.bind.uid, decision.number, step.plugin.name, sent))


def _ask(core: Core, decision: Decision) -> None:
    """Ask the plugins that can answer by now; bind the pod once all are content."""
    held, decision.ask_again = decision.held, False
    for step in decision.open_steps():
        if not step.has_arrived(core.view):
            continue
        _announce(core, decision, step)
        try:
            status = step.plugin.prepared(held.queued.pod, held.node, step.plan, core.view.snapshot())
        except Exception as failure:
            status = failed_with(failure)
        if status.is_success or status.is_skip:
            step.is_done = True
            core.timeline.record(decision.bind.uid, core.now, "prepared", step.plugin.name)
        elif status.code is not Code.WAIT:
            _give_up(core, decision, status.by(step.plugin.name))
            return
    if not decision.is_prepared:
        return
    if decision.awaits_gang:
        held.served.queue.gangs.mark_changed(decision.bind.uid)
    else:
        post(core, decision)


def _announce(core: Core, decision: Decision, step: Step) -> None:
    told, step.is_announced = step.is_announced, True
    if step.plan.announcement is not None and not told:
        held = decision.held
        core.actions.append(announced(held.queued.pod, step.plan.announcement, held.runtime.policy))


def _give_up(core: Core, decision: Decision, status: Status) -> None:
    core.bindings.end(decision.bind.uid)
    core.reject(decision.held, status, "PreBind")
