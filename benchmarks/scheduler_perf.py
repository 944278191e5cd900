"""The workloads of Kubernetes' own benchmark (test/integration/scheduler_perf), by their names there.

Sizes are its largest that CI runs. Two things differ: all pods live in one namespace, and initial pods are created
on their nodes instead of being scheduled unmeasured. `sized` keeps the proportion of initial pods to nodes.
"""

from __future__ import annotations

from typing import Final

from benchmarks.workloads import (
    HIGH_PRIORITY,
    HOSTNAME,
    IMPORTANT,
    NAMESPACE,
    PEERS,
    ZONE,
    Churn,
    Json,
    Workload,
    in_zones,
    on_node,
    peer_node,
    pod,
    preferred,
    required,
    spread,
)

MOONS: Final = ("moon-1", "moon-2", "moon-3")
DAEMON_NODE: Final = "node-000000"
GANG_SIZE: Final = 10

GANG_POLICY: Final = """\
policy "gangs" {
  scheduler "gangs"

  let group = pod.labels[?"group"].orValue("")

  gang "group" when group != "" {
    key:     pod.namespace + "/" + group
    min:     toInt(pod.labels[?"size"]).orValue(1)
    timeout: 60s
  }
}
"""


def _one_zone(i: int) -> Json:
    return peer_node(i, "zone1")


def _three_zones(i: int) -> Json:
    return peer_node(i, MOONS[i % 3])


def _one_big(i: int) -> Json:
    """The first node takes all the pods of a DaemonSet that tolerates no other."""
    if i:
        return peer_node(i, "zone1")
    node = peer_node(0, "zone1", pods="90000")
    for place in ("capacity", "allocatable"):
        node["status"][place] |= {"cpu": "9000", "memory": "45000Gi"}
    return node


def _kinds(i: int, count: int) -> Json:
    """Five kinds, one after the other, as many of each."""
    kind = i * 5 // count
    if kind == 1:
        return required(i, "podAffinity", "blue", ZONE)
    if kind == 2:
        return required(i, "podAntiAffinity", "green", HOSTNAME)
    if kind == 3:
        return preferred(i, "podAffinity", "red")
    if kind == 4:
        return preferred(i, "podAntiAffinity", "yellow")
    return pod(i)


def _important(turn: int, name: str, cpu: str) -> Json:
    """A pod of priority 10, which is not measured."""
    item = pod(turn, cpu=cpu, priority=HIGH_PRIORITY, priorityClassName=IMPORTANT)
    item["metadata"]["name"] = f"{name}-{turn:06d}"
    return item


def _too_big(turn: int) -> Json:
    return _important(turn, "too-big", "9")


def _preemptor(turn: int) -> Json:
    """Three of the four initial pods of some node have to go for it."""
    return _important(turn, "preemptor", "3")


def _low(i: int, count: int) -> Json:
    """Four of them fill a node up to 400m; they end at once when they are told to."""
    return pod(i, cpu="900m", terminationGracePeriodSeconds=0)


def _churned_node(turn: int) -> Json:
    node = peer_node(turn, "zone1")
    node["metadata"]["name"] = node["metadata"]["labels"][HOSTNAME] = f"churned-{turn:06d}"
    # Nothing fits on it: a node that comes and goes must not take measured pods with it.
    node["status"]["allocatable"] = {"cpu": "0", "memory": "0", "pods": "0"}
    return node


def _churned_service(turn: int) -> Json:
    meta = {"name": f"churned-{turn:06d}", "namespace": NAMESPACE}
    ports = [{"protocol": "TCP", "port": 80, "targetPort": 8080}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": {"app": "a"}, "ports": ports}}


def _gang_member(i: int) -> Json:
    return pod(i, labels={"group": f"group-{i // GANG_SIZE}", "size": str(GANG_SIZE)})


def _plain(i: int, count: int) -> Json:
    return pod(i)


PERF: Final = (
    Workload("SchedulingBasic", "default pods", 5_000, 10_000, pod, _one_zone, 1_000, _plain),
    Workload(
        "Daemonset", "every pod for one node, by name", 15_001, 30_000, lambda i: on_node(i, DAEMON_NODE), _one_big
    ),
    Workload(
        "NodeAffinity",
        "zone In [zone1, zone2], all nodes in zone1",
        5_000,
        10_000,
        lambda i: in_zones(i, "zone1", "zone2"),
        _one_zone,
        5_000,
        _plain,
    ),
    Workload(
        "PodAntiAffinity",
        "required host anti-affinity",
        5_000,
        2_000,
        lambda i: required(i, "podAntiAffinity", "green", HOSTNAME),
        _one_zone,
        1_000,
        lambda i, count: required(i, "podAntiAffinity", "green", HOSTNAME),
    ),
    Workload(
        "PodAffinity",
        "required zone affinity",
        5_000,
        5_000,
        lambda i: required(i, "podAffinity", "blue", ZONE),
        _one_zone,
        5_000,
        lambda i, count: required(i, "podAffinity", "blue", ZONE),
    ),
    Workload(
        "PreferredPodAffinity",
        "preferred host affinity",
        5_000,
        5_000,
        lambda i: preferred(i, "podAffinity", "red"),
        _one_zone,
        5_000,
        lambda i, count: preferred(i, "podAffinity", "red"),
    ),
    Workload(
        "PreferredPodAntiAffinity",
        "preferred host anti-affinity",
        5_000,
        5_000,
        lambda i: preferred(i, "podAntiAffinity", "yellow"),
        _one_zone,
        5_000,
        lambda i, count: preferred(i, "podAntiAffinity", "yellow"),
    ),
    Workload("TopologySpreading", "three zones, DoNotSchedule", 5_000, 5_000, spread, _three_zones, 5_000, _plain),
    Workload(
        "PreferredTopologySpreading",
        "three zones, ScheduleAnyway",
        5_000,
        5_000,
        lambda i: spread(i, "ScheduleAnyway"),
        _three_zones,
        5_000,
        _plain,
    ),
    Workload("MixedSchedulingBasePod", "default pods among five kinds", 5_000, 5_000, pod, _one_zone, 10_000, _kinds),
    Workload(
        "PreemptionAsync",
        "default pods; every 200 ms a pod of priority 10 that preempts three",
        5_000,
        5_000,
        pod,
        _one_zone,
        20_000,
        _low,
        churn=Churn(0.2, (_preemptor,), recreate=False),
    ),
    Workload(
        "Unschedulable",
        "default pods; every 200 ms a pod no node can take",
        5_000,
        10_000,
        pod,
        _one_zone,
        100,
        _plain,
        churn=Churn(0.2, (_too_big,), recreate=False),
    ),
    Workload(
        "MixedChurn",
        "default pods; every second a node, a pod and a service recreated",
        5_000,
        10_000,
        pod,
        _one_zone,
        churn=Churn(1.0, (_churned_node, _too_big, _churned_service), recreate=True),
    ),
    Workload(
        "Gang",
        f"default pods in gangs of {GANG_SIZE}, by a policy",
        5_000,
        10_000,
        _gang_member,
        _one_zone,
        policy=GANG_POLICY,
    ),
)

WORKLOADS: Final = {workload.name: workload for workload in (*PEERS, *PERF)}
"""Every workload by name."""
