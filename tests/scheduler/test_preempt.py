"""Messages in, actions out: a pod that fits nowhere, its victims, and what becomes of both."""

import json

import pytest

from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import DeleteVictim, PatchPodCondition, RecordEvent
from policyengine.scheduler.messages import NodeDeleted, PodDeleted, VictimDeleted, VictimNotDeleted
from tests.scheduler.driver import Driver, binds, deletions, node, notes, pod, profile, victims
from tests.scheduler.storage import budget
from tests.shared_facts import shared

TAINTED = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
WAITS = " preemption: waiting for the preemption for this pod to be finished"
FULL = "0/1 nodes are available: 1 Insufficient cpu."


def standing(name: str, cpu: str = "4", priority: int = 0):
    return pod(name, cpu=cpu).priority(priority).node("n1")


def preemptor(name: str = "high", cpu: str = "4", priority: int = 10):
    return pod(name, cpu=cpu).priority(priority)


def full() -> Driver:
    """One node, full with `low`, and `high` that wants it."""
    return Driver().showing(node("n1"), standing("low"), preemptor())


def preempting() -> tuple[Driver, DeleteVictim]:
    """As `full`, and `low` is to be deleted."""
    driver = full()
    (delete,) = deletions(driver.cycle())
    return driver, delete


def nominations(actions):
    patches = [action for action in actions if isinstance(action, PatchPodCondition)]
    return {patch.name: patch.nominated_node_name for patch in patches if patch.nominated_node_name is not None}


def test_a_pod_preempts_as_recorded():
    calls = json.loads(shared("recorded/scheduler-calls.json").read_text())
    told, marked, nominated, preempted = (calls[number]["request"] for number in (16, 17, 18, 23))
    driver = Driver().showing(node("node-1", cpu="2"), node("node-2", cpu="2"))
    driver.see(pod("small", cpu="1").node("node-1").set("metadata.generation", 1))
    driver.see(pod("fill1", cpu="2").priority(100).node("node-2"))
    driver.see(pod("high", cpu="2").priority(100).set("metadata.generation", 1))
    event, patch, delete = driver.cycle()
    assert (event.note, event.reason) == (told["note"], told["reason"])
    assert (patch.message, patch.nominated_node_name) == (
        nominated["status"]["conditions"][0]["message"],
        nominated["status"]["nominatedNodeName"],
    )
    condition = marked["status"]["conditions"][0]
    assert (delete.uid, delete.message, delete.observed_generation) == (
        "small",
        condition["message"],
        condition["observedGeneration"],
    )
    (said,) = driver.send(VictimDeleted(delete))
    assert isinstance(said, RecordEvent)
    for field in ("type", "reason", "action"):
        assert getattr(said, field) == preempted[field]
    assert said.note == preempted["note"].replace(calls[16]["request"]["regarding"]["uid"], "high")
    assert (said.name, said.resource_version) == ("small", "3")


def test_nobody_is_asked_within_the_cycle_and_the_pod_is_bound_once_the_victim_has_gone():
    driver, delete = preempting()
    assert driver.places("high") == ["unschedulable"]
    driver.send(VictimDeleted(delete))
    assert driver.places("high") == ["unschedulable"]
    driver.send(PodDeleted("default", "low", "low"))
    assert binds(driver.cycle()) == {"high": "n1"}


def test_a_pod_whose_victims_are_on_their_way_out_preempts_nobody_else():
    driver = full()
    assert victims(driver.cycle()) == ["low"]
    driver.see(node("n2"), pod("other", cpu="4").priority(1).node("n2"))
    driver.wait(400.0)
    actions = driver.cycle()
    assert (victims(actions), nominations(actions)) == ([], {})
    assert driver.state.view.pods["high"].nominated_node_name == "n1"


def test_a_victim_that_terminates_is_waited_for():
    driver, delete = preempting()
    driver.send(VictimDeleted(delete))
    going = standing("low").deleting("2100-01-01T00:00:00Z")
    driver.see(going.condition("DisruptionTarget", "True", "PreemptionByScheduler"))
    driver.wait(400.0)
    (note,) = notes(driver.cycle())
    assert note == (
        "FailedScheduling",
        f"{FULL} no new claims to deallocate, preemption: not eligible due to a terminating pod on the nominated node.",
    )
    assert driver.state.view.pods["high"].nominated_node_name == "n1"


def test_a_victim_that_never_dies_costs_the_pod_its_nomination():
    driver, delete = preempting()
    driver.send(VictimDeleted(delete))
    # It should have gone at second 1000, when this test begins.
    going = standing("low").deleting("1970-01-01T00:16:40Z")
    driver.see(going.condition("DisruptionTarget", "True", "PreemptionByScheduler"))
    driver.wait(400.0)
    actions = driver.cycle()
    assert (victims(actions), nominations(actions)) == ([], {"high": ""})
    assert "1 node(s) had victims that should have terminated long ago" in notes(actions)[0][1]


def test_a_preemptor_that_is_deleted_leaves_no_nomination_and_others_are_tried_again():
    driver = Driver().showing(node("n1"), preemptor().nominated("n1").gate("not yet"), pod("late", cpu="4").priority(5))
    assert binds(driver.cycle()) == {}
    driver.send(PodDeleted("default", "high", "high"))
    assert driver.state.view.nominated == {}
    driver.wait(10.0)
    assert binds(driver.cycle()) == {"late": "n1"}


def test_a_pod_being_deleted_holds_no_node():
    driver = full()
    driver.cycle()
    driver.see(preemptor().nominated("n1").deleting())
    assert driver.state.view.nominated == {}


def test_a_nomination_stands_until_the_server_shows_it():
    driver = full()
    driver.cycle()
    view = driver.state.view
    driver.see(preemptor().label("touched", "1"))
    assert view.pods["high"].nominated_node_name == "n1"
    driver.see(preemptor().nominated("n1"))
    driver.see(preemptor())
    assert view.pods["high"].nominated_node_name == ""


def test_lesser_pods_yield_to_a_nomination_and_their_own_ends():
    driver = Driver().showing(node("n1"), standing("low"), preemptor("middle", priority=5).nominated("n1"))
    driver.see(preemptor("high", priority=10))
    actions = driver.cycle(1)
    assert nominations(actions) == {"high": "n1", "middle": ""}
    ended = next(action for action in actions if isinstance(action, PatchPodCondition) and action.name == "middle")
    assert ended.reason == ""
    driver.send(PodDeleted("default", "low", "low"))
    assert binds(driver.cycle()) == {"high": "n1"}


def test_the_nominated_node_comes_first():
    driver = Driver().showing(node("n1"), node("n2", cpu="64"), pod("p").nominated("n1"))
    assert binds(driver.cycle()) == {"p": "n1"}


@pytest.mark.parametrize("retry_after", [0.0, 30.0])
def test_a_deletion_that_fails_has_the_pod_try_again_after_its_backoff(retry_after):
    driver, delete = preempting()
    driver.send(VictimNotDeleted(delete, "pods is forbidden", retry_after))
    assert driver.places("high") == ["backoff"]
    due = driver.state.next_wakeup()
    assert due is not None
    assert due >= driver.now + retry_after
    assert victims(driver.cycle()) == [], "and not early, though nothing else is to do"
    driver.until_wakeup()
    assert victims(driver.cycle()) == ["low"]


def test_a_pod_tried_before_its_victims_deletion_is_answered_is_tried_again_and_its_nomination_ends():
    driver = Driver().showing(node("n1"), node("tainted").taint("t", "x", "NoSchedule"), standing("low"), preemptor())
    (delete,) = deletions(driver.cycle())
    driver.send(NodeDeleted("n1"))
    driver.send(PodDeleted("default", "low", "low"))
    driver.wait(1.1)
    assert ("FailedScheduling", TAINTED + WAITS) in notes(driver.cycle())
    driver.send(VictimDeleted(delete))
    driver.wait(3.1)
    actions = driver.cycle()
    assert nominations(actions) == {"high": ""}
    assert "Preemption is not helpful for scheduling" in notes(actions)[0][1]


def test_a_pod_tried_before_its_victim_is_seen_leaving_is_tried_again_once_it_is():
    driver, delete = preempting()
    driver.send(VictimDeleted(delete))
    driver.see(preemptor().labels({"a": "b"}), node("n1", cpu="5"))
    driver.wait(1.1)
    assert driver.cycle() != []
    driver.wait(10.0)
    assert driver.places("high") == ["unschedulable"]
    driver.see(standing("low").deleting())
    driver.wait(3.1)
    assert driver.cycle() != []


def test_a_victim_that_was_gone_already_gets_no_event():
    driver, delete = preempting()
    assert driver.send(VictimDeleted(delete, was_there=False)) == []


def test_answers_for_a_preemptor_that_is_gone_are_taken():
    driver, delete = preempting()
    driver.send(PodDeleted("default", "high", "high"))
    assert len(driver.send(VictimDeleted(delete))) == 1
    assert driver.send(VictimNotDeleted(delete, "too late")) == []


def test_who_never_preempts_says_so():
    driver = Driver().showing(node("n1"), standing("low"), pod("meek", cpu="4").priority(10, policy="Never"))
    actions = driver.cycle()
    why = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert notes(actions) == [("FailedScheduling", f"{FULL} {why}")]
    assert victims(actions) == []


def test_a_budget_is_kept_where_that_is_possible():
    driver = Driver().showing(node("n1"), node("n2"), standing("kept").label("app", "kept"))
    driver.see(pod("free", cpu="4").priority(5).node("n2"), preemptor())
    driver.observe(budget(app="kept"))
    assert victims(driver.cycle()) == ["free"]


def test_a_profile_without_post_filters_preempts_nobody():
    driver = Driver(profile(post_filters=())).showing(node("n1"), standing("low"), preemptor())
    actions = driver.cycle()
    assert (victims(actions), notes(actions)) == ([], [("FailedScheduling", FULL)])


def test_a_post_filter_that_fails_makes_the_attempt_an_error():
    class Broken:
        name = "Broken"

        def events_to_register(self):
            return ()

        def post_filter(self, pod, diagnosis, evaluator, view):
            raise ValueError("no idea")

    driver = Driver(profile(post_filters=(Broken(),))).showing(node("n1"), standing("low"), preemptor())
    assert notes(driver.cycle()) == [("FailedScheduling", "no idea")]
    assert driver.places("high") == ["backoff"]


# --- room that was kept for a nominated pod is offered to others when that pod goes elsewhere ----------------

KEEPS_OFF = """policy "p" {
  scheduler "default-scheduler"
  base %s
  queue { order by pod.priority asc }
  filter "place" { require pod.name != "waits" || node.name == "n1" }
  filter "room" { require node.free.cpu >= pod.requests.cpu }
}"""


@pytest.mark.parametrize("base", ["none", "filters"])
@pytest.mark.parametrize("way", ["deleted", "bound by another scheduler", "placed elsewhere"])
def test_room_for_a_pod_that_goes_elsewhere_is_offered_to_others(base: str, way: str) -> None:
    """kube-scheduler offers it where the pod is deleted; where it is bound elsewhere too, issue 134859 asks of it."""
    driver = Driver(compile_policy(KEEPS_OFF % base)).showing(node("n1", cpu="2"), pod("there").node("n1"))
    if way == "placed elsewhere":
        driver.see(node("n2", cpu="2"))
    coming = pod("coming", cpu="2").priority(10).nominated("n1")
    coming.scheduler("default-scheduler" if way == "placed elsewhere" else "another")
    driver.see(coming, pod("waits"))
    assert binds(driver.cycle(1)) == {}
    assert driver.places("waits") == ["unschedulable"]
    bound: dict[str, str] = {}
    if way == "placed elsewhere":
        bound = binds(driver.cycle())
        assert bound["coming"] == "n2"
    elif way == "deleted":
        driver.send(PodDeleted("default", "coming", "coming"))
    else:
        driver.see(node("n2", cpu="2"))
        driver.wait(11.0)
        driver.cycle()
        driver.see(coming.node("n2"))
    driver.wait(11.0)
    assert {**bound, **binds(driver.cycle())}["waits"] == "n1"
