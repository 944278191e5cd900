"""Members of a gang that have a place and are not bound: let go together, or taken back together.

| of the gang's minimum | the members that wait at Permit | those whose volumes are being prepared | bindings posted |
|---|---|---|---|
| all have a place, may go, and are prepared | bound | bound | stay |
| all have a place and may go, some are not prepared | prepared; who has nothing to prepare waits | stay | stay |
| all have a place, a Permit plugin has some wait | wait, at most for the gang's timeout | stay | stay |
| too few have a place | given up | given up | withdrawn, where they can be |

Too few have a place once a member is deleted, refused at Permit, or fails to be bound, or the minimum grows. What is
given up is tried again together with the member that failed. What is bound stays bound: it counts.
"""

from __future__ import annotations

from policyengine.scheduler.binding.prebind import post
from policyengine.scheduler.conditions_and_events import UNSCHEDULABLE
from policyengine.scheduler.core import Core
from policyengine.scheduler.placement import bind
from policyengine.scheduler.profiles import ServedProfile
from policyengine.scheduler.queue.gang_table import Gang
from policyengine.scheduler.reservations import Decision, Phase, Reservation, WaitingPod


def settle(core: Core) -> None:
    """See to every gang of which something has changed."""
    for served in core.profiles.values():
        while changed := served.queue.gangs.take_changed():
            for gang in changed:
                _settle(core, served, gang)


def _settle(core: Core, served: ServedProfile, gang: Gang) -> None:
    if gang.minimum > 1 and (len(core.waiting_pods) or len(core.bindings)):
        waiting = [one for uid in gang.members if (one := core.waiting_pods.get(uid)) is not None]
        decisions = [decision for uid in gang.members if (decision := core.bindings.get(uid)) is not None]
        standing = len(gang.placed) - sum(bool(one.withdrawn) for one in decisions)
        if standing < gang.minimum:
            _take_back(core, served, gang, standing, waiting, decisions)
        elif standing - sum(not one.is_permitted for one in waiting) >= gang.minimum:
            _let_go(core, gang, [one for one in waiting if one.is_permitted], standing)
    if gang.requeue_refused:
        gang.requeue_refused = False
        served.queue.try_again(served.queue.queued_members(gang), core.now, "GangChanged", gang.rule)


def _let_go(core: Core, gang: Gang, permitted: list[WaitingPod], standing: int) -> None:
    """Prepare those that have something to prepare; then post the bindings of all."""
    for one in permitted:
        if one.held.plans:
            core.waiting_pods.pop(one.held.queued.uid, None)
            bind(core, one.held, awaits_gang=True)
    preparing = [
        decision
        for uid in gang.members
        if (decision := core.bindings.get(uid)) is not None and decision.phase is Phase.PREPARING
    ]
    done = [one for one in preparing if one.is_prepared]
    unpermitted = sum(core.waiting_pods.get(uid) is not None for uid in gang.members) - sum(
        core.waiting_pods.get(one.held.queued.uid) is one for one in permitted
    )
    if standing - unpermitted - (len(preparing) - len(done)) < gang.minimum:
        return
    for decision in done:
        post(core, decision)
    for one in permitted:
        if core.waiting_pods.pop(one.held.queued.uid, None) is not None:
            bind(core, one.held)


def _take_back(
    core: Core, served: ServedProfile, gang: Gang, standing: int, waiting: list[WaitingPod], decisions: list[Decision]
) -> None:
    reason = f"gang {gang.rule}: only {standing} of {gang.minimum} members kept their place"
    for one in waiting:
        core.waiting_pods.pop(one.held.queued.uid, None)
        _give_up(core, served, gang, one.held, reason)
    for decision in decisions:
        if decision.phase is Phase.PREPARING:
            core.bindings.end(decision.bind.uid)
            _give_up(core, served, gang, decision.held, reason)
        elif not decision.withdrawn:
            decision.withdrawn = reason


def _give_up(core: Core, served: ServedProfile, gang: Gang, held: Reservation, reason: str) -> None:
    core.release(held, reason)
    core.fail(served, held.queued, UNSCHEDULABLE, reason, frozenset({gang.rule}))
