"""One cycle of a gang that is not satisfied: so many members as it still takes are placed together, or none.

    team (the members that may be tried) -> draft (all judged on one snapshot, in the queue's order, each ranked as the
    policy says; where that leaves too little room, the smallest members once more, packed tightly)
      enough    -> kept: each goes on to Permit, and waits there for the others; who is left over goes on alone
      too few   -> room made by preemption, if that lets the whole gang in: victims are deleted, members nominated
                -> else refused, every member that was tried; room may be kept (`draining`)

Rules:
1. The popped member brings the others along, wherever in the queue they wait. The gang's turn is thus that of its first
   member.
2. A member that was refused for itself waits for what its refusers registered. One that had room, or was not refused
   for itself, waits for the others: it has no events of its own, and is brought along by the first that wakes.
3. All of a team back off alike, by the largest count of refusals among them.
4. A refused gang holds nothing.
"""

from __future__ import annotations

from policyengine.scheduler import conditions_and_events
from policyengine.scheduler.binding.permit import ask_permit
from policyengine.scheduler.core import Core
from policyengine.scheduler.gangs import draining, reserved_room
from policyengine.scheduler.gangs.gang import Gang
from policyengine.scheduler.gangs.gang_draft import Draft, Refused
from policyengine.scheduler.preemption import preempt
from policyengine.scheduler.profiles import Lane
from policyengine.scheduler.queue.queued_pod import QueuedPod

MOST_PREEMPTING = 64
"""Members for which room is made at once; a larger gang waits for room. Each takes a preemption try of its own, and
every pod has to be judged once more for each that is nominated."""

MOST_PACKED = 256
"""Members of a gang that is tried packed tightly, where it does not fit as the policy would have it."""


def needed(core: Core, gang: Gang) -> int:
    """How many more members must be placed together. A place by a decision that was withdrawn is none."""
    if not len(core.bindings):
        return gang.needed
    decisions = (core.bindings.get(uid) for uid in gang.placed)
    withdrawn = sum(decision is not None and bool(decision.withdrawn) for decision in decisions)
    return max(0, gang.minimum - len(gang.placed) + withdrawn)


def run(core: Core, lane: Lane, gang: Gang, popped: QueuedPod) -> None:
    """Try to place the gang, one of whose members the lane's queue has just popped."""
    team = lane.queue.gangs.team(gang, popped)
    count = needed(core, gang)
    draft = Draft(core, lane)
    if draft.fill(team, count):
        _commit(core, lane, gang, draft, popped)
        return
    draft.undo()
    packed = Draft(core, lane)
    if draft.held and count <= len(team) <= MOST_PACKED and packed.pack(team, count):
        _commit(core, lane, gang, packed, popped)
        return
    packed.undo()
    message = _message(gang, draft, count, len(team))
    if _may_preempt(core, lane, team, count):
        cleared = Draft(core, lane)
        cleared.fill(team, count)
        helps = cleared.make_room(count, gang.members)
        cleared.undo()
        if helps:
            _preempt(core, lane, gang, cleared, team, draft.refused, message)
            return
    _refuse(core, lane, gang, team, draft.refused, message)
    draining.keep_for(core, lane, gang, team, count)


def _commit(core: Core, lane: Lane, gang: Gang, draft: Draft, popped: QueuedPod) -> None:
    draft.keep()
    reserved_room.placed(core, gang)
    placed = {held.queued.uid for held in draft.held}
    for held in draft.held:
        _begin(core, lane, held.queued)
        core.took(held)
    for one in draft.refused.values():
        if one.is_error:
            _begin(core, lane, one.queued)
            core.fail(lane, one.queued, conditions_and_events.SCHEDULER_ERROR, one.message)
    refusal = draft.refused.get(popped.uid)  # none either where there were enough before it was its turn
    if popped.uid not in placed and not (refusal is not None and refusal.is_error):
        lane.queue.put_back(popped, core.now)
    lane.queue.gangs.rouse(gang, core.now)  # those left over go on alone; not those whom Permit may refuse below
    for held in draft.held:
        ask_permit(core, held)


def _begin(core: Core, lane: Lane, queued: QueuedPod) -> None:
    """Count the attempt of a member that was brought along; the popped one's is counted."""
    if lane.queue.join(queued, core.now):
        core.story.tell(queued.uid, core.now, "attempted", queued.attempts, lane.serving.policy_hash)


def _may_preempt(core: Core, lane: Lane, team: list[QueuedPod], count: int) -> bool:
    if not lane.serving.post_filters or len(team) < count or count > MOST_PREEMPTING:
        return False
    return not any(core.evictions.is_running(queued.uid, core.view) for queued in team)


def _refuse(
    core: Core, lane: Lane, gang: Gang, team: list[QueuedPod], refused: dict[str, Refused], message: str
) -> None:
    """No member is placed: tell each, and have it wait for what may cure it."""
    count = max(queued.unschedulable_count for queued in team)
    is_coming = any(core.evictions.is_running(queued.uid, core.view) for queued in team)
    nominated = None if is_coming else ""
    reason = conditions_and_events.UNSCHEDULABLE
    for queued in team:
        _begin(core, lane, queued)
    for queued in team:
        queued.unschedulable_count = count
        one = refused.get(queued.uid)
        if one is not None and one.is_error:
            core.fail(lane, queued, conditions_and_events.SCHEDULER_ERROR, one.message)
        elif one is not None and one.plugins:
            core.fail(lane, queued, reason, message, one.plugins, one.pending, nominated)
        else:
            core.fail(lane, queued, reason, message, frozenset({gang.rule}), nominated=nominated)


def _preempt(
    core: Core,
    lane: Lane,
    gang: Gang,
    draft: Draft,
    team: list[QueuedPod],
    refused: dict[str, Refused],
    message: str,
) -> None:
    """The whole gang fits once the victims are gone: they go, and the room is kept for the members nominated to it."""
    _refuse(core, lane, gang, team, refused, message)
    for held in draft.held:
        preempt.nominate(core, held.queued.pod, held.node)
    for held, victims in draft.victims:
        preempt.clear(core, lane, held.queued.pod, held.node, victims)


def _message(gang: Gang, draft: Draft, count: int, team: int) -> str:
    """`gang crew: room for 2 of 4 members; default/b: 0/3 nodes are available: …`"""
    placed, refused = len(draft.held), draft.refused
    if team < count and placed == team:
        return f"gang {gang.rule}: {team} of the {count} members still to be placed can be tried now"
    said = f"gang {gang.rule}: room for {placed} of {count} members"
    first = next(iter(refused.values()), None)
    return said if first is None else f"{said}; {first.queued.pod.key}: {first.message}"
