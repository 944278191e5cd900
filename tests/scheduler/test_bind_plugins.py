"""Bind and PostBind plugins: what is written with a binding, and who is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from policyengine.framework.events import NODE_ADD, ClusterEventWithHint
from policyengine.framework.placed import Binding
from policyengine.framework.reservation import Announcement
from policyengine.framework.status import SKIP, SUCCESS, Code, Status
from policyengine.scheduler.actions import Action, Bind, RecordEvent
from policyengine.scheduler.messages import BindSucceeded
from tests.scheduler.driver import Driver, binds, node, notes, pod, profile


class Binds:
    def __init__(self, name: str, answer: Binding | None) -> None:
        self.name, self.answer, self.asked = name, answer, 0

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(NODE_ADD),)

    def bind(self, pod: Any, node_name: str, snapshot: Any) -> Binding:
        self.asked += 1
        if self.answer is None:
            raise OSError("the registry is gone")
        return self.answer


class Told:
    def __init__(self, name: str, answer: Announcement | None, failure: str = "") -> None:
        self.name, self.answer, self.failure = name, answer, failure

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return ()

    def post_bind(self, pod: Any, node_name: str, snapshot: Any) -> Announcement | None:
        if self.failure:
            raise OSError(self.failure)
        return self.answer


def cycled(*plugins: Binds) -> tuple[Driver, list[Action]]:
    driver = Driver(profile(bind=plugins)).showing(node("n1"), pod("p"))
    return driver, driver.cycle()


def annotations(actions: list[Action]) -> list[dict[str, str]]:
    return [dict(action.annotations) for action in actions if isinstance(action, Bind)]


def test_the_first_that_does_not_skip_decides() -> None:
    last = Binds("last", Binding(SUCCESS, {"by": "last"}))
    plugins = Binds("none", Binding(SKIP)), Binds("this", Binding(SUCCESS, {"by": "this"})), last
    _, actions = cycled(*plugins)
    assert annotations(actions) == [{"by": "this"}]
    assert last.asked == 0


def test_where_all_skip_the_pod_is_bound_as_ever() -> None:
    _, actions = cycled(Binds("none", Binding(SKIP, {"not": "written"})))
    assert annotations(actions) == [{}]


@pytest.mark.parametrize(
    ("answer", "why"),
    [(Binding(Status(Code.UNSCHEDULABLE, ("no slot",))), "no slot"), (None, "the registry is gone")],
)
def test_a_refusal_gives_the_node_back(answer: Binding | None, why: str) -> None:
    driver, actions = cycled(Binds("registry", answer))
    assert binds(actions) == {}
    assert why in str(notes(actions))
    assert not driver.places("p")[0].startswith("assumed")


def test_who_is_told_of_a_bound_pod_may_have_its_owner_told_and_one_that_fails_changes_nothing() -> None:
    told = Told("broken", None, "no ink"), Told("silent", None), Told("loud", Announcement("Placed", "it is there"))
    driver = Driver(profile(post_bind=told)).showing(node("n1"), pod("p"))
    assert len(binds(driver.cycle())) == 1
    events = [one for one in driver.send(BindSucceeded("p")) if isinstance(one, RecordEvent)]
    assert [(one.reason, one.note) for one in events] == [
        ("Scheduled", "Successfully assigned default/p to n1"),
        ("Placed", "it is there"),
    ]
