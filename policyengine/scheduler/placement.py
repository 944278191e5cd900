"""The part of a cycle that one pod and a member of a gang go through alike: a node, what the pod needs there, Permit.

    find_feasible (Filter, nominated pods, room reserved for a gang) -> select_node (PreScore, Score, NormalizeScore)
    -> [assume] -> reserve (Reserve, the plans of PreBind) -> ask_permit (Permit) -> bind (PreBind, Bind)

Rules:
1. A refusal by Reserve or Permit gives the reservation back. A plugin that fails answers Error.
2. A reserved member of a gang waits, as at Permit, until enough of its gang have come as far (`gang_release`).
3. The decision carries the policy hash it was made with.
"""

from __future__ import annotations

from math import inf

from policyengine.cluster.pod_info import PodInfo
from policyengine.cluster.view import Snapshot
from policyengine.framework.evaluator import Evaluator
from policyengine.framework.events import MINUTE_PASSED
from policyengine.framework.filtering import Diagnosis
from policyengine.framework.nominated import filter_with_nominated
from policyengine.framework.placed import Binding
from policyengine.framework.reservation import MAX_PERMIT_WAIT, Permission, PreBindPlugin
from policyengine.framework.scoring import NOMINATED, ONLY, Choice, unscored
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.binding import prebind
from policyengine.scheduler.binding.verification import GIVES_WAY
from policyengine.scheduler.core import Core, failed_with
from policyengine.scheduler.profiles import ProfileRuntime, ServedProfile
from policyengine.scheduler.queue.queued_pods import NO_PLUGINS, QueuedPod
from policyengine.scheduler.reservations import Decision, Reservation, WaitingPod


def filter_nodes(core: Core, served: ServedProfile, pod: PodInfo) -> Diagnosis:
    """As `find_feasible`, as part of an attempt."""
    core.log(served.runtime, "preFilter", pod)
    return find_feasible(core, served.runtime, pod)


def find_feasible(core: Core, runtime: ProfileRuntime, pod: PodInfo) -> Diagnosis:
    """Which nodes may hold the pod, as things stand in the view, and why the others may not."""
    diagnosis = filter_with_nominated(runtime.evaluator, core.view, pod)
    if core.reserved_room is not None:
        diagnosis = core.reserved_room.refuse(core.view, core.now, runtime.evaluator, pod, diagnosis)
    return diagnosis


def select_node(evaluator: Evaluator, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis) -> Choice:
    """The node to take, of those that `diagnosis` (from this snapshot as it is) found feasible. The node that the pod
    is nominated to comes first, unscored."""
    nominated = snapshot.nodes.row_of.get(pod.nominated_node_name) if pod.nominated_node_name else None
    if nominated is not None and diagnosis.refusal(nominated).is_success:
        return unscored(NOMINATED, diagnosis, pod.nominated_node_name)
    if len(diagnosis.feasible) == 1:
        return unscored(ONLY, diagnosis, snapshot.nodes.names[diagnosis.feasible.item(0)])
    return evaluator.select_among(pod, snapshot, diagnosis)


def select_node_at_once(core: Core, served: ServedProfile, pod: PodInfo) -> Choice | None:
    """The node that `filter_nodes` and `select_node` would come to, if only the plugins have a say; else, and if no
    node is feasible, None."""
    if core.view.nominated or core.reserved_room is not None or pod.nominated_node_name:
        return None
    choice = served.runtime.evaluator.select_node(pod, core.view.snapshot())
    if choice is not None:
        core.log(served.runtime, "preFilter", pod)
    return choice


def error_in(diagnosis: Diagnosis) -> str | None:
    """The first node's Error answer, if a filter gave one: then the attempt is an error, not a refusal."""
    if diagnosis.pre_filter is not None:
        status = diagnosis.pre_filter
        failed = status.code is Code.ERROR
        return f'running PreFilter plugin "{status.plugin}": {status.message}' if failed else None
    rows = diagnosis.rows_with(Code.ERROR)
    if len(rows) == 0:
        return None
    status = diagnosis.refusal(int(rows[0]))
    return f'running "{status.plugin}" filter plugin: {status.message}'


def place(core: Core, served: ServedProfile, queued: QueuedPod, choice: Choice) -> None:
    """Reserve the node for the pod, and bind it there if nothing is to be waited for."""
    held = Reservation(queued, served, choice, served.runtime, core.now)
    core.view.assume(queued.uid, held.node)
    core.number(held)
    core.took(held)
    status = reserve(core, held)
    if status.is_success:
        ask_permit(core, held)
    else:
        core.reject(held, status, "Reserve")


def reserve(core: Core, held: Reservation) -> Status:
    """Have the plugins take what the pod, assumed on its node, needs. The first refusal, signed, or SUCCESS."""
    pod = held.queued.pod
    core.log(held.runtime, "reserve", pod, held.node)
    for plugin in held.runtime.reserve:
        try:
            status = plugin.reserve(pod, held.node, core.view.snapshot())
        except Exception as failure:
            status = failed_with(failure)
        if not status.is_success and not status.is_skip:
            return status.by(plugin.name)
    for preparer in held.runtime.pre_bind:
        try:
            status = _plan(core, held, preparer)
        except Exception as failure:
            status = failed_with(failure)
        if not status.is_success and not status.is_skip:
            return status.by(preparer.name)
    return SUCCESS


def _plan(core: Core, held: Reservation, plugin: PreBindPlugin) -> Status:
    """Note what the plugin will have to do before the pod is bound, and show it to others as done."""
    pod = held.queued.pod
    status, plan = plugin.plan(pod, held.node, core.view.snapshot())
    if status.is_success:
        held.plans.append((plugin, plan))
        for kind, item in plan.assumed:
            core.view.assume_object(pod.uid, kind, item)
    return status


def ask_permit(core: Core, held: Reservation, again: bool = False) -> None:
    """Bind a reserved pod if every Permit plugin lets it go; have it wait, or refuse it, if one does not. `again`: it
    was asked for before."""
    pod, queue = held.queued.pod, held.served.queue
    if not again:
        core.log(held.runtime, "permit", pod, held.node)
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
    gang = queue.gang_of(pod.uid)
    if gang is not None and gang.minimum > 1:
        _wait(core, held, waits, ask_at, end=(held.since + gang.timeout, gang.rule))
        queue.gangs.mark_changed(pod.uid)
    elif waits:
        _wait(core, held, waits, ask_at)
    else:
        bind(core, held)


def time_out(core: Core, waiting: WaitingPod) -> None:
    """The pod has waited at Permit for as long as its plugins, or its gang, allowed."""
    waited = waiting.deadline - waiting.held.since
    reason = f"rejected due to timeout after waiting {waited:g}s at plugin {waiting.plugin}"
    status = Status(Code.UNSCHEDULABLE, (reason,), waiting.plugin)
    core.reject(waiting.held, status, "Permit", seen=waiting.seen, also=waiting.kept_by)


def bind(core: Core, held: Reservation, awaits_gang: bool = False) -> None:
    """The pod may go: what is left is to prepare and to post its binding, which `awaits_gang` puts off until the gang's
    are posted."""
    pod = held.queued.pod
    held.queued.said = None  # what is not written yet is dropped before a binding, and so may have to be said again
    binder = None
    if core.extenders:
        binder = next((at for at, one in enumerate(core.extenders) if one.binds and one.is_interested(pod)), None)
    status, written = _binding(core, held, asks_plugins=binder is None)
    if not status.is_success:
        core.reject(held, status, "Bind")
        return
    annotations = dict(written)
    if core.unverified is not None and binder is None:
        annotations[GIVES_WAY] = held.runtime.policy_hash
    asked = Bind(pod.uid, pod.namespace, pod.name, held.node, held.runtime.policy_hash, annotations, binder)
    core.last_number += 1
    decision = core.bindings[pod.uid] = Decision(held, asked, core.last_number)
    core.log(held.runtime, "preBind", pod, held.node)
    held.served.queue.remove(pod.uid)
    if held.plans:
        prebind.begin(core, decision, awaits_gang)
    else:
        core.actions.append(asked)


def _binding(core: Core, held: Reservation, asks_plugins: bool) -> Binding:
    """What the policy writes with the binding, and what the first Bind plugin does that does not skip."""
    pod, profile, snapshot, asked = held.queued.pod, held.runtime.profile, core.view.snapshot(), ""
    try:
        written = {rule.key: rule.value(pod, held.node, snapshot) for rule in profile.annotations}
        for plugin in profile.bind if asks_plugins else ():
            asked = plugin.name
            found = plugin.bind(pod, held.node, snapshot)
            if found.status.is_success:
                return Binding(SUCCESS, {**written, **found.annotations})
            if not found.status.is_skip:
                return Binding(found.status.by(asked))
    except Exception as failure:
        return Binding(failed_with(failure).by(asked))
    return Binding(SUCCESS, written)


def _wait(
    core: Core, held: Reservation, waits: list[tuple[float, str]], ask_at: float, end: tuple[float, str] | None = None
) -> None:
    """Let the pod wait, for what the plugins named in `waits` registered, until the first time in `waits` and `end`,
    which is the gang's."""
    asked = {plugin for _, plugin in waits}
    waiters = [plugin for plugin in held.runtime.permit if plugin.name in asked]
    events = tuple(registered for plugin in waiters for registered in plugin.events_to_register())
    if any(one.event.matches(MINUTE_PASSED) for one in events):
        ask_at = min(ask_at, 60.0 * (core.now // 60.0 + 1.0))
    deadline, name = min(waits if end is None else [*waits, end])
    kept_by = frozenset(asked) if end is not None and name == end[1] else NO_PLUGINS
    uid = held.queued.uid
    core.waiting_pods[uid] = WaitingPod(
        held, name, events, deadline, core.last_number, ask_at, is_permitted=not waits, kept_by=kept_by
    )
    if waits:
        core.timeline.record(uid, core.now, "waiting", name, deadline - core.now)
