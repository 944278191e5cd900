"""A core that asks its queues after every message does what one does that asks only when something was left."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.scheduler import core
from policyengine.scheduler.messages import CacheSynced
from tests.scheduler import test_histories as gangs
from tests.scheduler import test_member_histories as teams
from tests.scheduler.driver import Driver, Label, node, notes, pod, profile
from tests.scheduler.world import replayed


class Always:
    """Something is always left."""

    is_due = property(lambda self: True, lambda self, value: None)


def asking_always(*profiles) -> Driver:
    with patch.object(core, "Aftermath", Always):
        return Driver(*profiles, synced=False)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(gangs.ours, gangs.others, gangs.reloads), min_size=20, max_size=60))
def test_asking_after_every_message_changes_nothing(history):
    world = gangs.run(history)
    world.settle()
    assert replayed(world.driver, asking_always(gangs.policy())) == world.actions


@settings(max_examples=15, deadline=None)
@given(st.lists(teams.steps, min_size=20, max_size=60))
def test_nor_where_the_policy_logs_holds_and_shares(history):
    world = teams.run(history)
    assert replayed(world.driver, asking_always(teams.serving())) == world.actions


def test_what_was_left_before_the_first_lists_were_in_is_seen_to_then():
    driver = Driver(profile(gangs=(Label(),)), synced=False)
    assert driver.see(pod("p").label("gang", "g").label("min", "2"), node()) == []
    told = driver.send(CacheSynced())
    assert notes(told) == [("FailedScheduling", "gang pod-group: 1 of 2 members exist")]
    assert driver.see(node("n2")) == []
