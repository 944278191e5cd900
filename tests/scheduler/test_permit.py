"""Reserve and Permit: between the choice of a node and its binding."""

import pytest

from policyengine.framework.events import NODE_ADD, ClusterEventWithHint
from policyengine.framework.reservation import Permission
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.scheduler.messages import PodDeleted, ProfileReplaced
from tests.scheduler.driver import Driver, binds, conditions, node, notes, pod, profile, victims

WAIT = Status(Code.WAIT)
REFUSED = Status(Code.UNSCHEDULABLE, ("not now",))


class Permit:
    name = "Permit"

    def __init__(self, *answers):
        self.answers = list(answers)

    def events_to_register(self):
        return [ClusterEventWithHint(NODE_ADD)]

    def permit(self, pod, node_name, snapshot, waited):
        return Permission(self.answers.pop(0), 20.0)


class Reserve:
    name = "Reserve"

    def __init__(self, answer=SUCCESS):
        self.answer = answer
        self.held = set()

    def events_to_register(self):
        return [ClusterEventWithHint(NODE_ADD)]

    def reserve(self, pod, node_name, snapshot):
        if self.answer is None:
            raise OSError("the storage is gone")
        if self.answer.is_success:
            self.held.add((pod.uid, node_name))
        return self.answer

    def unreserve(self, pod, node_name):
        self.held.discard((pod.uid, node_name))


def started(*answers, reserve=None):
    reserve = reserve or Reserve()
    driver = Driver(profile(permit=(Permit(*answers),), reserve=(reserve,))).showing(node("n1"), pod("p"))
    return driver, reserve


def test_a_permitted_pod_is_bound_at_once():
    driver, reserve = started(SUCCESS)
    assert binds(driver.cycle()) == {"p": "n1"}
    assert reserve.held == {("p", "n1")}


def test_a_refused_pod_gives_everything_back_and_waits_for_the_plugins_event():
    driver, reserve = started(REFUSED, SUCCESS)
    actions = driver.cycle()
    assert notes(actions) == [("FailedScheduling", "0/1 nodes are available: 1 not now.")]
    assert conditions(actions) == [("Unschedulable", "0/1 nodes are available: 1 not now.")]
    assert (driver.places("p"), reserve.held) == (["unschedulable"], set())
    driver.now += 5
    driver.see(node("n2"))
    assert set(binds(driver.cycle())) == {"p"}


def test_a_waiting_pod_keeps_its_room_and_is_asked_again_at_the_plugins_event():
    driver, reserve = started(WAIT, SUCCESS)
    assert driver.cycle() == []
    assert driver.places("p") == ["waiting at permit"]
    assert reserve.held == {("p", "n1")}
    assert driver.state.next_wakeup() == driver.now + 20.0
    driver.see(node("n2"))
    assert binds(driver.until_wakeup()) == {"p": "n1"}


def test_waiting_again_does_not_extend_the_wait():
    driver, _ = started(WAIT, WAIT)
    driver.cycle()
    end = driver.state.next_wakeup()
    driver.now += 10
    driver.see(node("n2"))
    driver.until_wakeup()
    assert driver.state.next_wakeup() == end


@pytest.mark.parametrize("how", ["deleted", "being deleted", "bound by somebody else"])
def test_a_waiting_pod_that_goes_releases_what_it_held(how):
    driver, reserve = started(WAIT)
    driver.cycle()
    if how == "deleted":
        driver.send(PodDeleted("default", "p"))
    else:
        driver.see(pod("p").deleting() if how == "being deleted" else pod("p").node("n1"))
    assert reserve.held == set()
    assert driver.state.next_wakeup() is None


def test_a_node_that_becomes_worse_sends_the_waiting_pod_back_to_its_turn():
    driver, reserve = started(WAIT, SUCCESS)
    driver.cycle()
    driver.see(node("n1").unschedulable())
    assert (driver.places("p"), reserve.held) == (["active"], set())


def test_of_those_that_wait_for_a_node_that_shrinks_the_newest_goes_back():
    driver = Driver(profile(permit=(Permit(WAIT, WAIT),))).showing(node("n1", cpu="2"), pod("p"), pod("q"))
    driver.cycle()
    driver.see(node("n1", cpu="1"))
    assert driver.places("p", "q") == ["waiting at permit", "active"]


def test_a_waiting_pod_that_is_preempted_is_not_deleted_and_tried_again_after_a_backoff():
    """`Preempt` of a waiting pod (framework/runtime/waiting_pods_map.go, v1.36): an error, not a refusal."""
    driver, reserve = started(WAIT, SUCCESS, SUCCESS)
    driver.cycle()
    driver.see(node("n1", pods="1"), pod("high").priority(10))
    actions = driver.cycle(1)
    assert victims(actions) == []
    assert ("SchedulerError", "waiting on permit for pod: preempted") in conditions(actions)
    assert (driver.places("p"), reserve.held) == (["backoff"], set())
    driver.see(node("n2"))
    assert set(binds(driver.wait(2.0) + driver.cycle())) == {"p", "high"}


def test_the_policy_that_decided_is_asked_to_the_end():
    driver, _ = started(WAIT, SUCCESS)
    driver.cycle()
    driver.send(ProfileReplaced(profile(permit=(Permit(REFUSED),), policy_hash="new")))
    driver.see(node("n2"))
    (bind,) = driver.until_wakeup()
    assert bind.policy_hash != "new"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, 'running Reserve plugin "Reserve": the storage is gone'),
        (Status(Code.ERROR, ("out of order",)), 'running Reserve plugin "Reserve": out of order'),
    ],
)
def test_a_reserve_plugin_that_fails_makes_the_attempt_an_error(answer, text):
    driver, _ = started(reserve=Reserve(answer))
    assert conditions(driver.cycle()) == [("SchedulerError", text)]
    assert driver.places("p") == ["backoff"]
    assert int(driver.state.view.nodes.requested("cpu")[0]) == 0


def test_a_plugin_without_its_methods_is_a_bug():
    with pytest.raises(TypeError, match="is no Permit plugin"):
        Driver(profile(permit=(Reserve(),)))
