"""A sample of decisions is made again: beside pods that room was made for, too."""

import json
from typing import Any

import pytest

from benchmarks.audit import AuditedCore, WrongDecision, check
from benchmarks.decisions import EPOCH, nodes_of
from benchmarks.scheduler_perf import WORKLOADS
from benchmarks.workloads import pod
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_objects import Pod
from policyengine.plugins.registry import default_profile
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.actions import Bind
from policyengine.scheduler.messages import CacheSynced, CyclesRequested, NodeObserved, PodObserved
from policyengine.scheduler.state import SchedulerState


def a_pod(name: str, cpu: str, priority: int, nominated: str = "", scheduler: str = "default-scheduler") -> PodObserved:
    item: dict[str, Any] = pod(0, cpu=cpu, priority=priority, schedulerName=scheduler)
    item["metadata"] |= {"name": name, "uid": name, "resourceVersion": "7"}
    item["status"] = {"nominatedNodeName": nominated}
    return PodObserved(decode(Pod, json.dumps(item).encode()))


def placed(*pods: PodObserved, nodes: int = 2) -> tuple[SchedulerState, dict[str, Bind]]:
    """All cycles of a cluster of nodes of 4 cpu."""
    state = SchedulerState([default_profile()])
    for node in nodes_of(WORKLOADS["peer-basic"].sized(nodes, 1)):
        state.handle(NodeObserved(node), EPOCH)
    for one in pods:
        state.handle(one, EPOCH)
    state.handle(CacheSynced(), EPOCH)
    actions = state.handle(CyclesRequested(len(pods)), EPOCH)
    return state, {action.name: action for action in actions if isinstance(action, Bind)}


def test_a_pod_on_the_node_it_was_nominated_to_is_right_though_another_has_more_points() -> None:
    state, binds = placed(a_pod("high", "3", 10, "node-000001"))
    assert binds["high"].node == "node-000001"
    check(state, binds["high"])


def test_a_pod_elsewhere_than_where_room_was_made_is_wrong() -> None:
    state, binds = placed(a_pod("high", "3", 10, "node-000001"))
    bind = binds["high"]
    wrong = Bind(bind.uid, bind.namespace, bind.name, "node-000000", bind.policy_hash)
    with pytest.raises(WrongDecision, match="room was made on `node-000001`"):
        check(state, wrong)


def test_a_pod_in_room_that_was_made_for_another_is_wrong() -> None:
    state, binds = placed(a_pod("low", "2", 0))
    right = binds["low"]
    taken = "node-000000"
    # Room for a pod of priority 10 is kept on the node: with it there the other does not fit.
    state.handle(a_pod("high", "3", 10, taken), EPOCH)
    other = Bind(right.uid, right.namespace, right.name, "node-000001", right.policy_hash)
    wrong = Bind(right.uid, right.namespace, right.name, taken, right.policy_hash)
    check(state, other)
    with pytest.raises(WrongDecision, match="a fresh evaluation refuses it"):
        check(state, wrong)


def test_of_a_gang_the_member_decided_first_is_checked_in_whatever_order_they_are_bound() -> None:
    """A gang is bound as its members came, and decided by UID where they came together: here these run apart."""
    text = 'policy "gangs" { scheduler "gangs" gang "g" { key: pod.namespace  min: 8  timeout: 1min } }'
    audited = AuditedCore(SchedulerState([compile_policy(text)]), every=1)
    for node in nodes_of(WORKLOADS["peer-basic"].sized(20, 1)):
        audited.handle(NodeObserved(node), EPOCH)
    for number in range(8):
        audited.handle(a_pod(f"p-{9 - number}", "1", 0, scheduler="gangs"), EPOCH)
    audited.handle(CacheSynced(), EPOCH)
    binds = [one.name for one in audited.handle(CyclesRequested(1), EPOCH) if isinstance(one, Bind)]
    assert binds == [f"p-{9 - number}" for number in range(8)]
    assert audited.checks == 1
