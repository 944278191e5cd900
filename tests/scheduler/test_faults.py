"""A fault, and the defence against it: with the defence the auditor is content, without it he objects.

The auditor is the world's own count of what stands on each node of the server.
"""

from __future__ import annotations

import pytest

from policyengine.scheduler import event_handlers
from policyengine.scheduler.reservations import Decision, Phase
from tests.scheduler.driver import Driver, profile
from tests.scheduler.world import World


def newest_first(pod, queued_at):
    return (-int(pod.uid[1:]),)


def world() -> World:
    """One node and two pods, each of which fills it: the first is being bound, the second waits for the room."""
    found = World(Driver(profile(queue_key=newest_first)))
    found.set_node("n1", 4, cordoned=False)
    for _ in range(2):
        found.create_pod(4)
        found.deliver(100)
        found.cycle(1)
    assert [bind.uid for bind in found.posted] == ["p1"]
    return found


def give_up_at_once(core, decision, asked_at):
    """In place of `seen_unassigned`: a pod read unassigned is given back to its queue."""
    if decision.phase is Phase.READING:
        core.bindings.end(decision.bind.uid)
        core.withdraw(decision.held, "seen unassigned")


def let_others_try(found: World) -> None:
    found.wait(11.0)
    found.cycle(10)
    while found.posted:
        found.answer_bind("succeeds")


@pytest.mark.parametrize("defended", [True, False])
def test_a_binding_that_lands_after_its_pod_was_read_unassigned(monkeypatch, defended):
    if not defended:
        monkeypatch.setattr(event_handlers, "seen_unassigned", give_up_at_once)
    found = world()
    found.answer_bind("lost and late")
    found.answer_read(fails=False)
    let_others_try(found)
    found.land_late()
    assert found.overcommitted() == ([] if defended else ["n1"])


@pytest.mark.parametrize("defended", [True, False])
def test_a_conflict_with_a_binding_of_our_own(monkeypatch, defended):
    if not defended:
        never = property(lambda self: False, lambda self, value: None)
        monkeypatch.setattr(Decision, "unsure", never, raising=False)
    found = world()
    found.answer_bind("lost and late")
    found.answer_read(fails=False)
    found.land_late()
    found.answer_bind("succeeds")  # posted again, it conflicts with itself
    let_others_try(found)
    assert found.overcommitted() == ([] if defended else ["n1"])
