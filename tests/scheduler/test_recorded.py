"""A real kube-scheduler's bindings, events and conditions, recorded; ours on the same pods must read the same."""

import json

from policyengine.scheduler.actions import Bind, PatchPodCondition, RecordEvent
from policyengine.scheduler.messages import BindSucceeded
from tests.scheduler.driver import Driver, make_node, pod
from tests.shared_facts import shared


def test_events_and_conditions_are_shaped_and_ordered_as_recorded():
    calls = json.loads(shared("recorded/scheduler-calls.json").read_text())
    about_big = [call for call in calls if _name(call) == "big"][:2]
    event, patch = about_big
    driver = Driver().showing(*[make_node(f"node-{n}").capacity(cpu="2", memory="4Gi", pods="110") for n in (1, 2)])
    driver.see(pod("big", cpu="100").set("metadata.generation", 1))
    ours_event, ours_patch = driver.cycle()
    assert isinstance(ours_event, RecordEvent)
    assert isinstance(ours_patch, PatchPodCondition)
    theirs = event["request"]
    for field in ("type", "reason", "action"):
        assert getattr(ours_event, field) == theirs[field]
    assert theirs["note"] == ours_event.note
    condition = patch["request"]["status"]["conditions"][0]
    assert (ours_patch.reason, ours_patch.observed_generation) == (condition["reason"], condition["observedGeneration"])
    assert condition["message"] == ours_patch.message


def test_a_binding_precedes_its_event_as_recorded():
    calls = json.loads(shared("recorded/scheduler-calls.json").read_text())
    binding, event = [call for call in calls if _name(call) == "small"][:2]
    driver = Driver().showing(make_node("node-1").capacity(cpu="2", memory="4Gi", pods="110"), pod("small"))
    (ours,) = driver.cycle()
    assert isinstance(ours, Bind)
    assert (ours.name, ours.node) == (binding["request"]["metadata"]["name"], binding["request"]["target"]["name"])
    (ours_event,) = driver.send(BindSucceeded("small"))
    assert isinstance(ours_event, RecordEvent)
    for field in ("type", "reason", "action", "note"):
        assert getattr(ours_event, field) == event["request"][field]


def _name(call):
    request = call.get("request") or {}
    regarding = request.get("regarding") or {}
    if regarding:
        return regarding["name"]
    return call["uri"].split("/pods/")[1].split("/")[0] if "/pods/" in call["uri"] else ""
