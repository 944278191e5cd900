"""Messages in, actions out: one pod's way through evaluating, placing and refusing."""

import pytest

from policyengine.framework.events import NODE_ADD, ClusterEventWithHint
from policyengine.framework.status import Code
from policyengine.scheduler.actions import Bind, PatchPodCondition, RecordEvent
from policyengine.scheduler.messages import BindSucceeded, CacheSynced, CyclesRequested
from tests.scheduler.driver import NAME, Driver, Label, Rule, binds, conditions, node, notes, pod, profile

NO_CLAIMS = " no new claims to deallocate, preemption:"


def unhelpful(nodes):
    return f"{NO_CLAIMS} 0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling."


def no_victims(nodes):
    return f"{NO_CLAIMS} 0/{nodes} nodes are available: {nodes} No preemption victims found for incoming pod."


def test_a_pod_is_bound_to_the_node_that_fits():
    driver = Driver().showing(node("small", cpu="1"), node("large", cpu="8"), pod("p", cpu="2"))
    actions = driver.cycle()
    hash_ = driver.state.profiles[0].policy_hash
    assert actions == [Bind("p", "default", "p", "large", hash_)]
    assert driver.places("p") == ["binding"]


def test_a_bound_pod_is_told_so_once_the_server_agrees():
    driver = Driver().showing(node("n1"), pod("p"))
    driver.cycle()
    actions = driver.send(BindSucceeded("p"))
    (event,) = actions
    assert isinstance(event, RecordEvent)
    assert (event.uid, event.resource_version, event.scheduler_name) == ("p", "2", NAME)
    assert event.note == "Successfully assigned default/p to n1"
    assert event.policy == f"default@{driver.state.profiles[0].policy_hash[:12]}"
    assert driver.see(pod("p").node("n1")) == []
    assert driver.places("p") == ["bound"]


def test_a_pod_that_fits_nowhere_gets_an_event_and_then_its_condition():
    driver = Driver().showing(node("n1"), node("n2"), pod("big", cpu="100").set("metadata.generation", 3))
    note = "0/2 nodes are available: 2 Insufficient cpu." + unhelpful(2)
    event, condition = driver.cycle()
    assert (event.type, event.reason, event.action, event.note) == ("Warning", "FailedScheduling", "Scheduling", note)
    assert condition == PatchPodCondition("big", "default", "big", "Unschedulable", note, 3, None)
    assert driver.places("big") == ["unschedulable"]


def test_a_condition_is_written_only_when_it_changes_an_event_each_time():
    driver = Driver().showing(node("n1"), pod("big", cpu="100"))
    assert len(conditions(driver.cycle())) == 1
    driver.wait(330.0)
    again = driver.cycle()
    assert (len(notes(again)), conditions(again)) == (1, [])
    driver.see(node("n2"))
    driver.wait(360.0)
    assert conditions(driver.cycle()) == [
        ("Unschedulable", "0/2 nodes are available: 2 Insufficient cpu." + unhelpful(2))
    ]


def test_a_condition_the_server_shows_already_is_not_written_again():
    driver = Driver()
    note = "0/1 nodes are available: 1 Insufficient cpu." + unhelpful(1)
    driver.see(node("n1"), pod("big", cpu="100").condition("PodScheduled", "False", "Unschedulable", note))
    actions = driver.cycle()
    assert (notes(actions), conditions(actions)) == ([("FailedScheduling", note)], [])


def test_a_nomination_is_cleared_when_an_attempt_fails():
    driver = Driver().showing(node("n1"), pod("big", cpu="100").nominated("n1"))
    (patch,) = [action for action in driver.cycle() if isinstance(action, PatchPodCondition)]
    assert patch.nominated_node_name == ""


def test_without_nodes_a_pod_is_retried_as_after_an_error():
    driver = Driver().showing(pod("p"))
    actions = driver.cycle()
    assert notes(actions) == [("FailedScheduling", "no nodes available to schedule pods")]
    assert conditions(actions) == [("Unschedulable", "no nodes available to schedule pods")]
    assert driver.places("p") == ["backoff"]
    driver.see(node("n1"))
    assert driver.cycle() == []
    driver.until_wakeup()
    assert binds(driver.cycle()) == {"p": "n1"}


def test_nothing_is_decided_before_the_lists_are_in():
    driver = Driver(synced=False).showing(node("n1"), pod("p"))
    assert not driver.state.ready
    assert driver.cycle() == []
    driver.send(CacheSynced())
    assert driver.state.ready
    assert binds(driver.cycle()) == {"p": "n1"}
    assert not driver.state.ready


def test_a_request_for_cycles_runs_no_more_than_it_asks_for():
    driver = Driver().showing(node("n1"), *[pod(f"p{number}", cpu="100m") for number in range(5)])
    assert [len(binds(driver.send(CyclesRequested(2)))) for _ in range(4)] == [2, 2, 1, 0]


def fails(pod, node):
    raise RuntimeError("the rule has a bug")


def answers(code):
    return lambda pod, node: code


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (fails, "the rule has a bug"),
        (answers(Code.ERROR), 'running "Rule" filter plugin: Rule says no'),
    ],
)
def test_a_plugin_that_fails_makes_the_attempt_an_error_and_nothing_more(says, message):
    driver = Driver(profile(filters=(Rule("Rule", says),))).showing(node("n1"), pod("p"))
    actions = driver.cycle()
    assert notes(actions) == [("FailedScheduling", message)]
    assert conditions(actions) == [("SchedulerError", message)]
    assert driver.places("p") == ["backoff"]
    assert not driver.state.ready  # an error is never retried before its time
    assert driver.cycle() == []


def test_a_refusal_names_the_rule_whose_events_cure_it():
    rule = Rule(
        "Rule", lambda pod, node: None if node == "good" else Code.UNSCHEDULABLE, [ClusterEventWithHint(NODE_ADD)]
    )
    driver = Driver(profile(filters=(rule,))).showing(node("bad"), pod("p"))
    assert notes(driver.cycle()) == [("FailedScheduling", "0/1 nodes are available: 1 Rule says no." + no_victims(1))]
    driver.now += 10
    driver.see(node("good"))
    assert binds(driver.cycle()) == {"p": "good"}


def test_a_pod_with_a_malformed_quantity_is_refused_with_what_is_wrong():
    driver = Driver().showing(node("n1"))
    actions = driver.see(pod("p", cpu="four"))
    assert "four" in notes(actions)[0][1]
    assert conditions(actions)[0][0] == "Unschedulable"
    assert driver.places("p") == ["gated"]
    driver.see(pod("p", cpu="4"))
    assert binds(driver.cycle()) == {"p": "n1"}


def test_of_a_gated_pod_the_server_speaks_not_we():
    driver = Driver().showing(node("n1"))
    assert driver.see(pod("p").gate("example.com/wait")) == []
    assert driver.places("p") == ["gated"]
    assert driver.cycle() == []
    driver.see(pod("p"))
    assert binds(driver.cycle()) == {"p": "n1"}


def test_pods_for_other_schedulers_are_only_accounted():
    driver = Driver()
    other = pod("other", cpu="3").scheduler("someone-else")
    driver.see(node("n1", cpu="4"), other, pod("p", cpu="2"))
    assert binds(driver.cycle()) == {"p": "n1"}
    assert driver.places("other") == ["unserved"]
    driver.see(other.node("n1"), pod("late", cpu="2"))
    assert binds(driver.cycle()) == {}


def test_a_pod_being_deleted_is_not_scheduled():
    driver = Driver()
    doomed = pod("p")
    driver.see(node("n1"), doomed)
    driver.see(doomed.deleting())
    assert driver.cycle() == []
    assert driver.places("p") == ["being deleted"]


def test_long_messages_are_cut_to_what_an_event_has_room_for():
    driver = Driver(profile(filters=(Rule("Ω" * 2000, answers(Code.UNSCHEDULABLE)),))).showing(node("n1"), pod("p"))
    (_, note), *_ = notes(driver.cycle())
    assert len(note.encode()) <= 1024
    assert note.endswith(" ...")


def test_gang_members_are_seen_to_wait_and_go_together():
    driver = Driver(profile(gangs=(Label(),)))
    members = [pod(name, cpu="100m").labels({"gang": "g", "min": "3"}) for name in "abc"]
    driver.see(node("n1"))
    actions = driver.see(members[0])
    assert notes(actions) == [("FailedScheduling", "gang pod-group: 1 of 3 members exist")]
    assert conditions(actions) == [("Unschedulable", "gang pod-group: 1 of 3 members exist")]
    assert notes(driver.see(members[1])) == [("FailedScheduling", "gang pod-group: 2 of 3 members exist")]
    assert driver.cycle() == []
    assert conditions(driver.wait(5.0)) == [("Unschedulable", "gang pod-group: 2 of 3 members exist")]
    assert driver.see(members[2]) == []
    assert set(binds(driver.cycle())) == {"a", "b", "c"}
    driver.see(pod("late", cpu="100m").labels({"gang": "g", "min": "3"}))
    assert set(binds(driver.cycle())) == {"late"}


def test_what_is_due_before_the_first_lists_is_told_once_they_are_in_and_of_whole_gangs_nothing():
    message = "gang pod-group: 1 of 2 members exist"
    driver = Driver(profile(gangs=(Label(),)), synced=False)
    for name in "ab":
        assert driver.see(pod(name).labels({"gang": "whole", "min": "2"})) == []
    assert driver.see(pod("p").label("gang", "g").label("min", "2"), node()) == []
    assert driver.wait(1.0) == []
    told = driver.send(CacheSynced())
    assert notes(told) == [("FailedScheduling", message)]
    assert conditions(told) == [("Unschedulable", message)]
    assert driver.see(node("n2")) == []


def test_the_same_messages_give_the_same_actions():
    def history(driver):
        actions = driver.see(*[node(f"n{number}", cpu="2") for number in range(5)])
        for number in range(12):
            actions += driver.see(pod(f"p{number}", cpu=f"{number * 100}m").priority(number % 3))
            actions += driver.cycle(2)
        return actions

    assert history(Driver()) == history(Driver())
