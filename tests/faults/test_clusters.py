"""Faults 15 to 18, 25, 29 and 30: the cluster changes between a decision and its binding, or while one is made."""

from __future__ import annotations

import asyncio
from typing import Any

from policyengine.cluster.view import ClusterView, PodChange
from policyengine.framework import changes
from policyengine.scheduler import event_handlers
from policyengine.scheduler.queue.scheduling_queue import SchedulingQueue
from policyengine.scheduler.state import SchedulerState
from tests.faults.actors import meanwhile
from tests.faults.defence import fault
from tests.faults.objects import NODES, PODS
from tests.faults.world import World
from tests.faulty_server import effects

STATUS = {"verb": "patch", "resource": "pods", "subresource": "status", "client": "scheduler"}
GONE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


async def decided_not_sent(world: World, cpu: str = "1") -> None:
    """A pod `p` that is on its way to n1: its binding waits, ten seconds, for what it was told before."""
    world.start()
    await asyncio.sleep(1)
    world.faults.add(effects.Delay(10.0), **STATUS)
    await world.pod("p", cpu)
    await asyncio.sleep(2)
    await world.node("n1", "1")
    await asyncio.sleep(4)


@fault(
    15,
    "I9",
    defence="a node that changed has the decisions for it asked again; the runner asks `may_bind` before it posts "
    "(`scheduler/binding/verification.py`, `kube/writing/writer.py`)",
    taken_out="`may_bind` is always yes",
    without=lambda patch: patch.setattr(SchedulerState, "may_bind", lambda self, uid: True),
)
async def test_15_a_node_cordoned_or_tainted_or_deleted_before_the_binding(world: World) -> None:
    await decided_not_sent(world)
    await world.patch_node("n1", {"spec": {"unschedulable": True}})
    await asyncio.sleep(10)
    await world.patch_node("n1", {"spec": {"unschedulable": None}})
    world.faults.add(meanwhile(("DELETE", f"{NODES}/n1", None)), **STATUS)
    await world.pod("q", "3")
    await asyncio.sleep(10)
    await world.settle()


def leaving_decisions_alone(patch: Any) -> None:
    patch.setattr(event_handlers, "revalidate", lambda core, node: None)


@fault(
    16,
    "I2",
    defence="a node that offers less has the decisions for it asked again (`scheduler/binding/verification.py`)",
    taken_out="decisions are left alone",
    without=leaving_decisions_alone,
)
async def test_16_a_node_shrinks_and_a_pod_grows_before_the_binding(world: World) -> None:
    await decided_not_sent(world)
    await world.shrink("n1", "500m")
    await asyncio.sleep(10)
    await world.shrink("n1", "2")
    await asyncio.sleep(10)
    grown = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]}}
    await world.call("PATCH", f"{PODS}/p/resize", grown, "application/strategic-merge-patch+json")
    await world.pod("q", "600m")
    await world.settle()


def forgetting_who_stood_there(patch: Any) -> None:
    original = ClusterView.remove_node

    def remove_node(self: Any, name: str) -> Any:
        events = original(self, name)
        for uid in self.orphans.pop(name, {}):
            self.pods.pop(uid)
        return events

    patch.setattr(ClusterView, "remove_node", remove_node)


@fault(
    17,
    "I2 I7",
    defence="the pods of a node that went are kept, and count again when it comes back (`cluster/view.py`)",
    taken_out="they are forgotten with the node",
    without=forgetting_who_stood_there,
)
async def test_17_a_node_is_deleted_and_created_again(world: World) -> None:
    await world.node("n1", "1")
    world.start()
    await world.pod("stands")
    await asyncio.sleep(2)
    await world.pod("waits")
    await asyncio.sleep(2)
    await world.call("DELETE", f"{NODES}/n1")
    await asyncio.sleep(5)
    await world.node("n1", "1")
    await asyncio.sleep(30)
    await world.call("DELETE", f"{NODES}/n1")
    await world.node("n1", "2")
    await world.settle()


@fault(
    18,
    "I2",
    defence="whoever else places a pod on a node has the decisions for it asked again "
    "(`scheduler/binding/verification.py`)",
    taken_out="decisions are left alone",
    without=leaving_decisions_alone,
)
async def test_18_somebody_else_binds_a_pod_to_the_node(world: World) -> None:
    await decided_not_sent(world)
    await world.pod("foreign", scheduler="another")
    await world.bind("foreign", "n1")
    await asyncio.sleep(20)
    await world.settle()


def keeping_nominations(patch: Any) -> None:
    original = ClusterView.remove_pod

    def remove_pod(self: Any, uid: str) -> Any:
        pod = self.pods.get(uid)
        if pod is not None and pod.nominated_node_name:
            return PodChange(pod, None, [])
        return original(self, uid)

    patch.setattr(ClusterView, "remove_pod", remove_pod)
    patch.setattr(event_handlers, "_mind_nomination", lambda core, old, new: None)


@fault(
    25,
    "I3",
    defence="a nomination ends with its pod, and the room is offered to others "
    "(`cluster/view.py`, `scheduler/event_handlers.py`)",
    taken_out="a nomination outlives its pod",
    without=keeping_nominations,
)
async def test_25_a_victim_that_never_dies_and_a_preemptor_that_is_deleted(world: World) -> None:
    await world.node("n1", "2")
    world.start()
    await world.pod("victim", "1")
    await asyncio.sleep(2)
    high = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 100}
    await world.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)
    await world.pod("preemptor", "2", priorityClassName="high", priority=100)
    await asyncio.sleep(5)
    victim = await world.call("GET", f"{PODS}/victim")
    preemptor = await world.call("GET", f"{PODS}/preemptor")
    begun = "deletionTimestamp" in victim["metadata"] and preemptor["status"].get("nominatedNodeName") == "n1"
    world.put("found", ("scene", begun, "room is being made"))
    await world.pod("small", "1")
    await asyncio.sleep(20)
    await world.delete("preemptor")
    await asyncio.sleep(5)
    await world.settle()


@fault(
    29,
    "I3",
    defence="an event moves those it may help, those whose attempt still runs included; what waited five minutes is "
    "tried again besides (`scheduler/queue/scheduling_queue.py`, `scheduler/queue/queued_pods.py`)",
    taken_out="events move nobody",
    without=lambda patch: patch.setattr(SchedulingQueue, "move", lambda self, *event, **how: None),
)
async def test_29_room_comes_free_while_the_pod_is_being_refused(world: World) -> None:
    await world.node("n1", "1")
    world.start()
    await world.pod("stands")
    await asyncio.sleep(2)
    world.faults.add(meanwhile(("DELETE", f"{PODS}/stands", GONE)), **STATUS)
    await world.pod("waits")
    await asyncio.sleep(5)
    await world.settle(60)


def never_computing_again(patch: Any) -> None:
    patch.setattr(changes.Changes, "nodes_since", lambda self, position: changes.NO_ROWS)
    patch.setattr(changes.Changes, "since", lambda self, nodes, pods: changes.NO_ROWS)


@fault(
    30,
    "I2 I9",
    defence="a kept answer is computed again in every row a journal names (`framework/plugin_column.py`)",
    taken_out="the journals name no rows",
    without=never_computing_again,
)
async def test_30_an_answer_kept_from_before_is_what_a_fresh_one_would_be(world: World) -> None:
    for number in range(3):
        await world.node(f"n{number}", "2")
    world.start()
    for number in range(8):
        await world.pod(f"p{number}")
        await asyncio.sleep(1)
    await world.patch_node("n1", {"spec": {"unschedulable": True}})
    for number in range(4):
        await world.delete(f"p{number}")
        await asyncio.sleep(1)
    await world.settle()
