"""A queue under test: its profile, its pods, and short words for what is done with them."""

from dataclasses import replace

from policyengine.cluster.view import ClusterView
from policyengine.framework.events import (
    ASSIGNED_POD_DELETE,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    Resource,
)
from policyengine.framework.profile import Profile
from policyengine.framework.status import SUCCESS, Code, Status
from policyengine.scheduler.pod_timeline import PodTimelines
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue
from tests.builders import make_pod
from tests.scheduler.driver import Label, Rule
from tests.scheduler.invariants import validate_queue

LABELLED = ClusterEvent(Resource.UNSCHEDULED_POD, ActionType.UPDATE_POD_LABEL, "UnschedulablePodUpdatePodLabel")
FIT = frozenset({"Fit"})


class Gates:
    """Gates pods with scheduling gates, or with the label `gated`."""

    name = "Gates"

    def __init__(self, *events):
        self._events = [ClusterEventWithHint(event) for event in events]

    def events_to_register(self):
        return self._events

    def pre_enqueue(self, pod, snapshot):
        gated = pod.shape.spec.scheduling_gates or pod.labels.get("gated") == "true"
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("waits for a gate",)) if gated else SUCCESS


def rules(*more):
    fit = Rule(
        "Fit", lambda pod, node: None, [ClusterEventWithHint(ASSIGNED_POD_DELETE), ClusterEventWithHint(LABELLED)]
    )
    return Profile("p", "default-scheduler", "h", filters=(fit, *more), pre_enqueue=(Gates(),), gangs=(Label(),))


def queue(*more, **changes):
    return SchedulingQueue(replace(rules(*more), **changes), PodTimelines(), ClusterView(), 0.0)


def info(name="p", **labels):
    return make_pod(name).labels(labels).info()


def add(line, *pods, now=0.0):
    for pod in pods:
        line.observe_member(pod, now)
        line.add(pod, now)
    validate_queue(line)


def pop(line, now=0.0):
    found = line.pop(now)
    validate_queue(line)
    return None if found is None else found.uid


def refuse(line, name, now, plugins=FIT, **more):
    popped = line.pop(now)
    assert popped.uid == name
    line.failed(popped, now, plugins, **more)
    validate_queue(line)
    return popped


def place(line, uid):
    return line.pods.get(uid).place
