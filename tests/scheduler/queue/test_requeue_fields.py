"""A change of one field of one object wakes, within a second, the pods whose refusing rule reads it, and no others.

One rule for each field of the schema, each the whole policy of one waiting pod. The table below, made by hand, says
which fields a change alters.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from policyengine.cluster.kinds import BY_KIND
from policyengine.cluster.objects import decode
from policyengine.cluster.pod_groups import KINDS, POD_GROUP
from policyengine.cluster.workload_objects import Namespace, PodGroup
from policyengine.language.schema import OBJECTS
from policyengine.policy_compiler import compile_policy
from policyengine.scheduler.messages import NodeDeleted, ObjectDeleted, ObjectObserved, PodDeleted
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.scheduler.driver import Driver, binds

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
USAGE = "policyengine.io/usage-cpu"
LONG_AGO = 'timestamp("1980-01-01T00:00:00Z")'

# Each expression is false whatever the field holds.
BY_TYPE = {
    "string": '{0} == "@"',
    "int": "{0} == -7",
    "bool": "{0} && !{0}",
    "timestamp": f"{{0}} == {LONG_AGO}",
    "optional(timestamp)": f"{{0}} == optional.of({LONG_AGO})",
    "optional(string)": '{0} == optional.of("@")',
    "map(string, string)": '"@" in {0}',
    "resources": "{0}.cpu > 1000000",
    "limits": "{0}.?cpu.orValue(0m) > 1000000",
    "usage": "{0}.?cpu.orValue(0m) > 1000000",
    "qos": '{0} < "BestEffort"',
    "optional(owner)": '{0}.?name.orValue("") == "@"',
}


def false_about(object_name: str, field: str, of: str) -> str:
    kind = str(OBJECTS[object_name].fields[field].type)
    return BY_TYPE.get(kind, "{0}.size() < 0").format(f"{of}.{field}")


NODE_FIELDS = {name: false_about("node", name, "node") for name in OBJECTS["node"].fields}
OWN_FIELDS = {name: false_about("pod", name, "pod") for name in OBJECTS["pod"].fields}
RULES: dict[str, str] = {
    **{f"node.{name}": condition for name, condition in NODE_FIELDS.items()},
    **{f"nodes {name}": f"nodes.exists(n, {false_about('node', name, 'n')})" for name in ("taints", "free", "images")},
    **{f"pod.{name}": condition for name, condition in OWN_FIELDS.items()},
    **{f"{of} {name}": f"{source}.exists(p, {false_about('clusterPod', name, 'p')})"
       for of, source in (("placed", "node.pods"), ("all", "pods"), ("nominee", "node.nominated"))
       for name in OBJECTS["clusterPod"].fields},
    **{f"node.{what}": condition for what, condition in (
        ("share", "(node.used.cpu + pod.requests.cpu) / node.allocatable.cpu <= -1.0"),
        ("room", "node.free.cpu - pod.requests.cpu >= 1000000"),
        ("reserve", "!(node.podCount < 1000) || node.used.cpu >= 1000000"),
    )},
    "domain pods": 'node.domain("rack").pods.size() < 0',
    "domain nodes": 'node.domain("rack").nodes.size() < 0',
    "group": "podGroup.hasValue() && !podGroup.hasValue()",
    "group minMember": "podGroup.?minMember.orValue(0) == -7",
    "group minResources": "podGroup.?minResources.?cpu.orValue(0m) > 1000000",
    "group named": 'podGroup("crew").hasValue() && !podGroup("crew").hasValue()',
    "group named minMember": 'podGroup("crew").?minMember.orValue(0) == -7',
    "nodeCount": "cluster.nodeCount < 0",
    "podCount": "cluster.podCount < 0",
    "pendingCount": "cluster.pendingCount < 0",
}  # fmt: skip


def node() -> NodeBuilder:
    builder = make_node("n").uid("n").capacity(cpu="4", memory="8Gi", pods="500").label("rack", "r").ready()
    return builder.condition("MemoryPressure", "False", "fine").image("i:1", 5)


def placed(name: str = "placed") -> PodBuilder:
    return make_pod(name).req(cpu="1").node("n").created("2026-01-01T00:00:00Z")


def waiting(name: str = "waiting") -> PodBuilder:
    return make_pod(name).req(cpu="1").scheduler("nobody").created("2026-01-01T00:00:00Z")


def scheduler_name(rule: str) -> str:
    return rule.replace(" ", "-")


def own(rule: str) -> PodBuilder:
    pod = make_pod(f"own-{list(RULES).index(rule)}").req(cpu="1")
    return pod.scheduler(scheduler_name(rule)).label(GROUP, "crew")


GROUP = "scheduling.x-k8s.io/pod-group"
Change = Callable[[Driver], object]


def group(name: str = "crew", **spec: object) -> Change:
    def change(driver: Driver) -> object:
        versions[0] += 1
        metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": f"{versions[0]}"}
        return driver.send(ObjectObserved("PodGroup", decode(PodGroup, {"metadata": metadata, "spec": spec})))

    return change


def namespace(name: str = "default", **metadata: object) -> Change:
    def change(driver: Driver) -> object:
        versions[0] += 1
        known = {"name": name, "uid": name, "resourceVersion": f"{versions[0]}", **metadata}
        return driver.send(ObjectObserved("Namespace", decode(Namespace, {"metadata": known})))

    return change


versions = [0]


def shows(*builders: NodeBuilder | PodBuilder) -> Change:
    return lambda driver: driver.see(*builders)


def fields(of: str, *names: str) -> set[str]:
    return {f"{of} {name}" for name in names}


def everything(*sorts: str) -> set[str]:
    """What reads a list at all: its length changes."""
    return {rule for rule in RULES if rule.split()[0] in sorts}


OF_NODES = {rule for rule in RULES if rule.startswith("node.")} | everything("nodes", "placed", "nominee", "domain")
PLACED = everything("placed", "all") | {
    "node.used", "node.free", "node.podCount", "node.pods", "nodes free", "domain pods", "podCount", "pendingCount",
    "node.share", "node.room", "node.reserve",
}  # fmt: skip
NO_TRUER_BY_PLACING = {"node.free", "node.share", "node.room"}
NAMED = {"group named", "group named minMember"}
WAITING = everything("all", "nominee") | {"node.nominated", "podCount", "pendingCount"}

POD_CHANGES: dict[str, tuple[Callable[[PodBuilder], PodBuilder], set[str]]] = {
    "label": (lambda pod: pod.label("k", "v"), {"labels"}),
    "group label": (lambda pod: pod.label(GROUP, "other"), {"labels", "podGroup"}),
    "annotation": (lambda pod: pod.annotation("k", "v"), {"annotations"}),
    "less": (lambda pod: pod.req(cpu="500m"), {"requests", "containers"}),
    "more": (lambda pod: pod.req(cpu="2"), {"requests", "containers"}),
    "limit": (lambda pod: pod.limit(cpu="2"), {"limits", "containers"}),
    "guaranteed": (
        lambda pod: pod.req(memory="1Gi").limit(cpu="1", memory="1Gi"), {"requests", "limits", "qos", "containers"}
    ),
    "init container": (lambda pod: pod.init(image="i:1"), {"initContainers", "images"}),
    "image": (lambda pod: pod.image("other:2"), {"containers", "images"}),
    "toleration": (lambda pod: pod.toleration("k", "Exists"), {"tolerations"}),
    "node selector": (lambda pod: pod.node_selector({"k": "v"}), {"nodeSelector"}),
    "owner": (lambda pod: pod.owner("Job", "j", "u"), {"owner"}),
    "label and owner": (lambda pod: pod.label("k", "v").owner("Job", "j", "u"), {"labels", "owner"}),
    "priority": (lambda pod: pod.priority(5), {"priority"}),
    "priority class": (lambda pod: pod.set("spec.priorityClassName", "high"), {"priorityClass"}),
    "volume": (lambda pod: pod.volume("v", emptyDir={}), {"volumes"}),
    "service account": (lambda pod: pod.set("spec.serviceAccountName", "robot"), {"serviceAccount"}),
    "another gate": (lambda pod: pod.set("spec.hostNetwork", True), set()),
}  # fmt: skip
STATUS_CHANGES: dict[str, tuple[Callable[[PodBuilder], PodBuilder], set[str]]] = {
    "started": (lambda pod: pod.started("2026-01-05T00:00:00Z"), {"startedAt"}),
    "terminating": (lambda pod: pod.deleting(), {"terminating"}),
    "restarts": (lambda pod: pod.container_status(restarts=3), {"restarts"}),
    "scheduled": (
        lambda pod: pod.condition("PodScheduled", "True", time="2026-01-05T00:00:00Z"), {"scheduledAt"}
    ),
    "disrupted": (lambda pod: pod.condition("DisruptionTarget", "True"), set()),
}  # fmt: skip


def of_placed(names: set[str]) -> set[str]:
    sums = {"node.used", "node.free", "nodes free", "node.share", "node.room", "node.reserve"}
    totals = sums if "requests" in names else set[str]()
    return fields("placed", *names) | fields("all", *names) | totals


def of_namespace(name: str) -> set[str]:
    return {f"pod.{name}"} | fields("placed", name) | fields("all", name) | fields("nominee", name)


CHANGES: dict[str, tuple[Change, set[str]]] = {
    "cordon": (shows(node().unschedulable()), {"node.unschedulable"}),
    "capacity": (shows(node().set("status.capacity.cpu", "9")), {"node.capacity"}),
    "allocatable": (shows(node().set("status.allocatable.cpu", "3")),
                    {"node.allocatable", "node.free", "nodes free", "node.share", "node.room"}),
    "zone": (shows(node().label(ZONE, "z")), {"node.labels", "node.zone", "domain pods", "domain nodes"}),
    "region": (shows(node().label(REGION, "z")), {"node.labels", "node.region", "domain pods", "domain nodes"}),
    "annotation": (shows(node().annotation("k", "v")), {"node.annotations"}),
    "usage": (shows(node().annotation(USAGE, "1")), {"node.annotations", "node.usage"}),
    "taint": (shows(node().taint("k")), {"node.taints", "nodes taints"}),
    "image": (shows(node().image("j:1", 5)), {"node.images", "nodes images"}),
    "reason": (shows(node().set("status.conditions", [{"type": "Ready", "status": "True", "reason": "x"}])),
               {"node.conditions"}),
    "not ready": (shows(node().set("status.conditions", [{"type": "Ready", "status": "False"}])),
                  {"node.conditions", "node.ready"}),
    "taint and capacity": (shows(node().taint("k").set("status.capacity.cpu", "9")),
                           {"node.taints", "nodes taints", "node.capacity"}),
    "a feature": (shows(node().set("status.declaredFeatures", ["F"])), set()),
    "a node comes": (shows(make_node("m").capacity(cpu="1", memory="1Gi", pods="9")), OF_NODES | {"nodeCount"}),
    "a pod is placed": (
        shows(placed("new")), (PLACED | {"node.nominated"} | everything("nominee")) - NO_TRUER_BY_PLACING
    ),
    "a placed pod goes": (lambda driver: driver.send(PodDeleted("default", "placed", "placed")), PLACED),
    "a pod comes": (shows(waiting("new")), WAITING),
    "a waiting pod goes": (lambda driver: driver.send(PodDeleted("default", "waiting", "waiting")), WAITING),
    "nominated": (shows(waiting().nominated("n")), {"node.nominated"} | everything("nominee")),
    "minMember": (group(minMember=3, minResources={"cpu": "1"}), {"group minMember", "group named minMember"}),
    "minResources": (group(minMember=2, minResources={"cpu": "2"}), {"group minResources"}),
    "another group": (group("other", minMember=7, minResources={"cpu": "7"}), everything("group") & NAMED),
    "another group goes": (
        lambda driver: driver.send(ObjectDeleted("PodGroup", "default", "other")), everything("group") & NAMED
    ),
    "the namespace's label": (namespace(labels={"k": "v"}), of_namespace("namespaceLabels")),
    "the namespace's annotation": (namespace(annotations={"k": "v"}), of_namespace("namespaceAnnotations")),
    "the namespace goes": (lambda driver: driver.send(ObjectDeleted("Namespace", "", "default")), set()),
    "its finalizer": (namespace(finalizers=["x"]), set()),
    "another namespace's label": (
        namespace("other", labels={"k": "v"}),
        of_namespace("namespaceLabels") - {"pod.namespaceLabels"},
    ),
    "the group goes": (lambda driver: driver.send(ObjectDeleted("PodGroup", "default", "crew")), everything("group")),
    **{f"placed: {what}": (shows(change(placed())), of_placed(names))
       for what, (change, names) in {**POD_CHANGES, **STATUS_CHANGES}.items()},
    **{f"waiting: {what}": (shows(change(waiting())), fields("all", *names) | fields("nominee", *names))
       for what, (change, names) in POD_CHANGES.items()},
    **{f"own: {what}": (
           lambda driver, change=change: driver.see(*(change(own(rule)) for rule in RULES if rule.startswith("pod."))),
           {f"pod.{name}" for name in names} | fields("all", *names) | fields("nominee", *names),
       ) for what, (change, names) in POD_CHANGES.items()},
}  # fmt: skip
PROFILES = [
    compile_policy(
        f'policy "p" {{ scheduler "{scheduler_name(rule)}" base none filter "f" {{ require {condition} }} }}'
    )
    for rule, condition in RULES.items()
]


def rest(driver: Driver) -> None:
    """Lets every pod be refused again, at a time at which no minute ends within the next seconds."""
    driver.now = 60.0 * (driver.now // 60.0 + 1.0) + 1.0
    driver.wait(0.0)
    while driver.state.ready:
        driver.cycle()


def show_others(driver: Driver) -> None:
    driver.see(node(), placed(), waiting())
    group(minMember=2, minResources={"cpu": "1"})(driver)
    namespace()(driver)
    namespace("other")(driver)


def undo(what: str, driver: Driver) -> None:
    driver.send(NodeDeleted("m"))
    driver.send(PodDeleted("default", "new", "new"))
    show_others(driver)
    if what.startswith("own"):
        driver.see(*map(own, RULES))


def woken_by(change: Change, driver: Driver) -> set[str]:
    """The rules whose pods, all refused, are to be tried again within a second."""
    uids = {rule: own(rule).build().metadata.uid for rule in RULES}
    rest(driver)
    assert {driver.state.place(uid) for uid in uids.values()} == {"unschedulable"}
    change(driver)
    driver.wait(1.0)
    return {rule for rule, uid in uids.items() if driver.state.place(uid) != "unschedulable"}


def in_the_cluster() -> Driver:
    driver = Driver(*PROFILES)
    driver.validates = False
    for served in driver.state._core.profiles.values():
        served.queue.indices[0]._verdicts.filters.clear()  # these refuse whatever happens, and would say so if asked
    show_others(driver)
    driver.see(*map(own, RULES))
    return driver


def test_a_change_wakes_those_whose_rule_reads_it_and_no_others() -> None:
    driver = in_the_cluster()
    wrong: dict[str, tuple[set[str], set[str]]] = {}
    for what, (change, altered) in CHANGES.items():
        woken = woken_by(change, driver)
        if woken != altered & RULES.keys():
            wrong[what] = woken - altered, altered & RULES.keys() - woken
        undo(what, driver)
    assert wrong == {}


def test_a_node_that_goes_wakes_those_whose_rule_reads_a_list_of_nodes() -> None:
    driver = in_the_cluster()
    driver.see(make_node("m").uid("m").capacity(cpu="1", memory="1Gi", pods="9"))
    woken = woken_by(lambda driver: driver.send(NodeDeleted("m")), driver)
    assert woken == everything("nodes") | {"domain nodes", "domain pods", "nodeCount"}


def test_every_field_of_a_node_and_of_a_pod_is_changed_by_something() -> None:
    """But for those that no update changes, and those that only time or the queue does."""
    fixed = {"name", "namespace", "uid", "createdAt", "queuedAt", "attempts", "node"}
    altered = set[str]().union(*(rules for _, rules in CHANGES.values()))
    unchanged = {rule for rule in RULES if rule not in altered}
    assert {rule.replace(".", " ").split()[-1] for rule in unchanged} <= fixed | {"finished"}


GROUPED = compile_policy('policy "p" { scheduler "s" base none filter "f" { require podGroup.hasValue() } }')


@pytest.mark.parametrize("kind", KINDS)
def test_of_pods_that_were_refused_alike_a_group_wakes_its_own(kind: str) -> None:
    """As kube-scheduler's GangScheduling does, whose hint looks for the pod's own group."""
    driver = Driver(GROUPED).showing(node())
    for name in ("a", "b", "c"):
        member = make_pod(name).scheduler("s")
        driver.see(
            member.label(GROUP, f"crew-{name}")
            if kind == POD_GROUP
            else member.set("spec.schedulingGroup", {"podGroupName": f"crew-{name}"})
        )
    driver.cycle()
    for place, name in enumerate(("b", "c", "a")):
        metadata = {"name": f"crew-{name}", "namespace": "default", "uid": name, "resourceVersion": str(place + 1)}
        driver.send(ObjectObserved(kind, decode(BY_KIND[kind].type, {"metadata": metadata})))
        driver.wait(11.0)
        assert binds(driver.cycle()) == {name: "n"}
    assert [driver.told(name).count("refused") for name in "abc"] == [1, 1, 1]
