"""One cycle of a gang that is not satisfied: as many members as it still takes are placed together, or none.

    members to try -> draft (each filtered and scored on one snapshot, in the queue's order; if that leaves too little
    room, the smallest members once more, packed tightly)
      enough    -> kept: each goes on to Permit, and waits there for the others; who is left over goes on alone
      too few   -> room made by preemption, if that lets the whole gang in: victims are deleted, members nominated
                -> else refused, every member that was tried; room may be reserved (`node_choice`)

Rules:
1. The popped member brings the others along, wherever in the queue they wait, but for those that wait out an error
   or were refused at Permit: the gang's turn is that of its first member.
2. A member that was refused for itself waits for what its refusers registered, a member that had room for the others.
   The first that wakes brings all along: what woke it may help its mates through it. What refused one of the smallest,
   packed tightly, may be another plugin: all wait for what that registered too.
3. All members tried back off alike, by the largest count of refusals among them.
4. A refused gang holds nothing but what is bound, and, while its victims are going, its nominations: to end one wakes
   those who wait beside it, its own members too, and the gang would be tried without a pause.
5. Once a gang that is bound in part is overdue, all such gangs are tried again: of two that block each other the one
   whose turn comes first preempts the other (`ServedProfiles.giving_way`).

Example: a gang of 3 members, 2 cpu each; n1 has 4 cpu free, n2 has 1. a and b fit on n1, c fits nowhere: none is
placed, all are told `gang crew: room for 2 of 3 members; default/c: 0/2 nodes are available: …`. c waits for what
NodeResourcesFit registered, a and b for c.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from math import inf

from policyengine.cluster.workload_objects import NativePodGroup
from policyengine.framework.filtering import Diagnosis
from policyengine.scheduler import preempt
from policyengine.scheduler.conditions_and_events import SCHEDULER_ERROR, UNSCHEDULABLE
from policyengine.scheduler.core import GROUP_UNSCHEDULABLE, Core, group_message
from policyengine.scheduler.gangs import group_preemption, node_choice, topology_placement
from policyengine.scheduler.gangs.gang_draft import MOST_PREEMPTING, Attempt, Draft, Refused
from policyengine.scheduler.placement import ask_permit
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.queue.queued_pods import Place, QueuedPod

MOST_PACKED = 256
"""Members of a gang that is tried packed tightly, where it does not fit as the policy would have it."""


def needed(core: Core, gang: Gang) -> int:
    """How many more members must be placed together. A place by a decision that was withdrawn is none."""
    if not len(core.bindings):
        return gang.needed
    decisions = (core.bindings.get(uid) for uid in gang.placed)
    withdrawn = sum(decision is not None and bool(decision.withdrawn) for decision in decisions)
    return max(0, gang.minimum - len(gang.placed) + withdrawn)


def run(core: Core, served: ServedProfile, gang: Gang, popped: QueuedPod) -> None:
    """Try to place the gang, one of whose members the profile's queue has just popped."""
    attempt = Attempt(core, served, gang, _members_to_try(served, gang, popped), needed(core, gang))
    group = topology_placement.constraint_of(popped.pod)
    if group is not None:
        _run_within(replace(attempt, count=max(1, attempt.count)), group, popped)
        return
    draft = Draft(attempt)
    if draft.fill():
        _commit(attempt, draft, popped)
        return
    draft.undo()
    packed = Draft(attempt)
    if draft.held and attempt.count <= len(attempt.members) <= MOST_PACKED and packed.pack():
        _commit(attempt, packed, popped)
        return
    packed.undo()
    message = _message(attempt, draft)
    refused = _refused_either_way(attempt, draft, packed)
    if _preempt_whole(attempt, refused, message):
        return
    for make_room in (Draft.make_room, Draft.pack_making_room) if _may_preempt(attempt) else ():
        cleared = Draft(attempt)
        helps = make_room(cleared)
        cleared.undo()
        if helps:
            _preempt(attempt, cleared, refused, message)
            return
    _refuse(attempt, refused, message)
    node_choice.reserve_for(attempt)
    _note_when_overdue(core, gang)


def _run_within(attempt: Attempt, group: NativePodGroup, popped: QueuedPod) -> None:
    """As `run`, of a group whose members stand in one domain: also those that it could do without."""
    found = topology_placement.place(attempt, group)
    if found.draft is not None:
        _commit(attempt, found.draft, popped)
        return
    first = next(iter(found.refused.values()), None)
    why = "" if first is None else f"; {first.queued.pod.key}: {first.message}"
    _refuse(attempt, found.refused, f"gang {attempt.gang.rule}: {found.message}{why}")
    _tell_groups(attempt, SCHEDULER_ERROR if found.is_error else UNSCHEDULABLE, found.group_message)


def preempt_for_one(core: Core, served: ServedProfile, gang: Gang, queued: QueuedPod, diagnosis: Diagnosis) -> bool:
    """Refuse a pod that is tried alone, and make room for it as for its PodGroup as a whole; False where that is not
    made room for so."""
    message = diagnosis.message()
    refused = {queued.uid: Refused(queued, message, diagnosis.plugins, diagnosis.pending_plugins, diagnosis)}
    return _preempt_whole(Attempt(core, served, gang, [queued], 1), refused, message)


def try_again_overdue(core: Core) -> None:
    """A gang that is bound in part is overdue: it may have to give way to another one, so all such gangs are tried."""
    core.gang_overdue_at = inf
    for served in core.profiles.values():
        for gang in served.queue.gangs:
            if gang.placed and gang.refused_since is not None:
                _note_when_overdue(core, gang)
                served.queue.try_again(served.queue.queued_members(gang), core.now, "GangOverdue", gang.rule)


def _note_when_overdue(core: Core, gang: Gang) -> None:
    if gang.placed and core.now < gang.overdue_at < core.gang_overdue_at:
        core.gang_overdue_at = gang.overdue_at


def _members_to_try(served: ServedProfile, gang: Gang, popped: QueuedPod) -> list[QueuedPod]:
    """The members to be tried together, the one just popped among them, in the queue's order; without those that wait
    out an error, and those that were refused at Permit: placing others lets none of them go."""
    queue, permits = served.queue, {plugin.name for plugin in served.runtime.permit}
    others = [
        queued
        for queued in queue.queued_members(gang)
        if queued.place is Place.ACTIVE
        or (queued.place is Place.UNSCHEDULABLE and _may_be_helped(queued.unschedulable_plugins, gang, permits))
        or (queued.place is Place.BACKOFF and not queued.error_count)
    ]
    return sorted([popped, *others], key=queue.order)


def _may_be_helped(refused_by: Set[str], gang: Gang, permits: set[str]) -> bool:
    return gang.rule in refused_by or refused_by.isdisjoint(permits)


def _commit(attempt: Attempt, draft: Draft, popped: QueuedPod) -> None:
    core, served, gang = attempt.core, attempt.served, attempt.gang
    draft.keep()
    node_choice.placed(core, gang)
    placed = {held.queued.uid for held in draft.held}
    for held in draft.held:
        core.number(held)
    for held in draft.held:
        _begin(attempt, held.queued)
        core.took(held)
    for one in draft.refused.values():
        if one.is_error:
            _begin(attempt, one.queued)
            core.fail(served, one.queued, SCHEDULER_ERROR, one.message)
    refusal = draft.refused.get(popped.uid)  # none either where there were enough before it was its turn
    if popped.uid not in placed and not (refusal is not None and refusal.is_error):
        served.queue.put_back(popped, core.now)
    # Members left over go on alone. Before Permit: those that it may refuse are not among them.
    served.queue.try_again(served.queue.queued_members(gang), core.now, "GangChanged", gang.rule)
    for held in draft.held:
        ask_permit(core, held)


def _begin(attempt: Attempt, queued: QueuedPod) -> None:
    """Count the attempt of a member that was brought along; the popped one's is counted."""
    core, served = attempt.core, attempt.served
    if queued.place is not Place.IN_FLIGHT:
        served.queue.detach(queued)
        served.queue.begin(queued)
        core.timeline.record(queued.uid, core.now, "attempted", queued.attempts, served.runtime.policy_hash)


def _may_preempt(attempt: Attempt) -> bool:
    enough = attempt.count <= min(len(attempt.members), MOST_PREEMPTING)
    return bool(attempt.served.runtime.post_filters) and enough and not _is_room_coming(attempt)


def _is_room_coming(attempt: Attempt) -> bool:
    return any(preempt.is_room_coming(attempt.core, attempt.served, queued.pod) for queued in attempt.members)


def _refuse(attempt: Attempt, refused: dict[str, Refused], message: str) -> None:
    """No member is placed: tell each, and have it wait for what may cure it."""
    core, served, members = attempt.core, attempt.served, attempt.members
    count = max(queued.unschedulable_count for queued in members)
    nominated = None if _is_room_coming(attempt) else ""
    for queued in members:
        _begin(attempt, queued)
    for queued in members:
        queued.unschedulable_count = count
        one = refused.get(queued.uid)
        if one is not None and one.is_error:
            core.fail(served, queued, SCHEDULER_ERROR, one.message)
        elif one is not None and one.plugins:
            core.fail(served, queued, UNSCHEDULABLE, message, one.plugins, one.pending, nominated)
        else:
            core.fail(served, queued, UNSCHEDULABLE, message, frozenset({attempt.gang.rule}), nominated=nominated)
    failed = next((one for one in refused.values() if one.is_error), None)
    if failed is not None:
        _tell_groups(attempt, SCHEDULER_ERROR, group_message(SCHEDULER_ERROR, failed.message, waits=False))


def _tell_groups(attempt: Attempt, reason: str, message: str) -> None:
    """What came of the attempt is the same for all members, and so for their PodGroup."""
    for queued in attempt.members:
        attempt.core.pod_groups.refuse(queued.pod, reason, message)


def _refused_either_way(attempt: Attempt, draft: Draft, packed: Draft) -> dict[str, Refused]:
    """What keeps each member waiting: its own refusal, and what refused one of them packed tightly. The next time it is
    the packing that may fit, and where another plugin than before stood against it nobody would be woken."""
    also = frozenset(plugin for one in packed.refused.values() for plugin in one.plugins)
    if not also:
        return draft.refused
    found = {}
    for queued in attempt.members:
        one = draft.refused.get(queued.uid) or Refused(queued, "")
        own = one.plugins or frozenset({attempt.gang.rule})
        found[queued.uid] = one if one.is_error else replace(one, plugins=own | also)
    return found


def _preempt(attempt: Attempt, draft: Draft, refused: dict[str, Refused], message: str) -> None:
    """The whole gang fits once the victims are gone: they go, and the room is kept for the members nominated to it."""
    _refuse(attempt, refused, message)
    _tell_groups(attempt, UNSCHEDULABLE, group_message(UNSCHEDULABLE, message, waits=True))
    for held in draft.held:
        preempt.nominate(attempt.core, held.queued.pod, held.node)
    for held, victims, why in draft.victims:
        preempt.clear(attempt.core, attempt.served, [(held.queued, held.node)], victims, why)


def _preempt_whole(attempt: Attempt, refused: dict[str, Refused], message: str) -> bool:
    """Make room as for a PodGroup as a whole, or refuse it; False where it is not made so."""
    own = group_preemption.preempts_whole(attempt)
    if own is None or not _may_preempt(attempt):
        return False
    room = group_preemption.find_room(attempt, own)
    _refuse(attempt, refused, message)
    if room.why_not:
        _tell_groups(attempt, UNSCHEDULABLE, f"{GROUP_UNSCHEDULABLE}, {room.why_not}")
        node_choice.reserve_for(attempt)
        _note_when_overdue(attempt.core, attempt.gang)
        return True
    for held in room.held:
        preempt.nominate(attempt.core, held.queued.pod, held.node)
    places = [(held.queued, held.node) for held in room.held]
    preempt.clear(attempt.core, attempt.served, places, room.victims, group=own.metadata.uid)
    return True


def _message(attempt: Attempt, draft: Draft) -> str:
    """`gang crew: room for 2 of 4 members; default/b: 0/3 nodes are available: …`"""
    rule, count, members = attempt.gang.rule, attempt.count, len(attempt.members)
    placed, refused = len(draft.held), draft.refused
    if members < count and placed == members:
        return f"gang {rule}: {members} of the {count} members still to be placed can be tried now"
    said = f"gang {rule}: room for {placed} of {count} members"
    first = next(iter(refused.values()), None)
    return said if first is None else f"{said}; {first.queued.pod.key}: {first.message}"
