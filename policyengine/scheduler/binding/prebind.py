"""PreBind: what has to be true of other objects before a pod's binding is posted.

| what happens | the reservation | the pod |
|---|---|---|
| a patch is made | stays | the plan's next patch is sent |
| all patches are made and seen, every plugin says SUCCESS | stays | its binding is posted |
| a plugin says WAIT | stays | asked again when an object of the plugin's kinds changes |
| a plugin refuses or fails, its time is up, a patch is refused | given up | error backoff; event and condition |
| the server is overloaded or out of reach | given up | error backoff, at least Retry-After; nobody is told |

What was written stays written, as with kube-scheduler: the next attempt finds it and goes on from there. A request
whose answer was lost may still land; it names the version it was made for, so that it changes nothing that was
decided since.
"""

from __future__ import annotations

from policyengine.framework.status import Code, Status
from policyengine.scheduler.actions import PatchObject
from policyengine.scheduler.binding.bind_result import fail_quietly
from policyengine.scheduler.binding.bindings import Decision, Phase
from policyengine.scheduler.binding.preparation import Step
from policyengine.scheduler.binding.reservation import failed_with
from policyengine.scheduler.core import Core
from policyengine.scheduler.logs import log
from policyengine.scheduler.messages import BindFailure, ObjectPatched, ObjectPatchFailed


def begin(core: Core, decision: Decision) -> None:
    """The pod is reserved and permitted: do what its plans ask for, then bind it."""
    core.bindings.add(decision)
    if decision.held.runtime.has_logs:
        log(core, decision.held.runtime, "preBind", decision.held.queued.pod, decision.bind.node)
    preparation = decision.preparation
    if preparation is None:
        core.actions.append(decision.bind)
        return
    for step in preparation.steps:
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
    if decision is None or decision.preparation is None:
        return
    patch = message.asked.patch
    core.timeline.record(message.asked.uid, core.now, "written", patch.kind, patch.key)
    step = decision.preparation.step(message.asked.plugin)
    step.patched(message.resource_version)
    _send_next(core, decision, step)
    _ask(core, decision)


def object_patch_failed(core: Core, message: ObjectPatchFailed) -> None:
    """A patch is not made, or nobody knows."""
    decision = _asked_by(core, message.asked)
    if decision is None:
        return
    if message.failure is BindFailure.OVERLOADED:
        core.bindings.pop(decision.bind.uid)
        core.release(decision.held, message.message)
        fail_quietly(core, decision, message.message, message.retry_after)
    else:
        _give_up(core, decision, Status(Code.ERROR, (message.message,), message.asked.plugin))


def ask_due(core: Core) -> None:
    """Ask again about the pods for which something has changed, and end those whose time is up."""
    for decision in core.bindings.preparations_due(core.now):
        assert decision.preparation is not None
        late = next((step for step in decision.preparation.open() if step.deadline <= core.now), None)
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
        core.actions.append(PatchObject(decision.bind.uid, decision.number, step.plugin.name, patch))


def _ask(core: Core, decision: Decision) -> None:
    """Ask the plugins that can answer by now; bind the pod once all are content."""
    preparation, held = decision.preparation, decision.held
    assert preparation is not None
    preparation.ask_again = False
    for step in list(preparation.open()):
        if not step.has_arrived(core.view):
            continue
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
    if preparation.is_done:
        if decision.awaits_gang:
            held.served.queue.gangs.mark_changed(decision.bind.uid)
        else:
            post(core, decision)


def _give_up(core: Core, decision: Decision, status: Status) -> None:
    core.bindings.pop(decision.bind.uid)
    core.reject(decision.held, status, "PreBind")
