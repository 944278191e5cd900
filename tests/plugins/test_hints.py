"""Which changes wake a refused pod: every plugin registers what kube-scheduler's registers, and what could not help
wakes nobody.

Source of the registrations: EventsToRegister in kube-scheduler's framework/plugins, v1.36, where queueing hints are on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from policyengine.cluster.device_objects import DeviceClass, ResourceClaim
from policyengine.cluster.objects import decode
from policyengine.cluster.storage_objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from policyengine.framework.events import ActionType, QueueingHint, Resource
from policyengine.plugins.extended_resources import IMPLICIT
from policyengine.plugins.registry import IN_TREE, build
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.plugins.devices import devices
from tests.plugins.devices.devices import allocated, using

A, D, U = ActionType.ADD, ActionType.DELETE, ActionType.UPDATE
LABEL, TAINT = ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_TAINT
OFFER, FEATURE = ActionType.UPDATE_NODE_ALLOCATABLE, ActionType.UPDATE_NODE_DECLARED_FEATURE
POD_LABEL, TOLERATION = ActionType.UPDATE_POD_LABEL, ActionType.UPDATE_POD_TOLERATION
GATES, GENERATED = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
SHRINK = ActionType.UPDATE_POD_SCALE_DOWN
R = Resource
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
Json = dict[str, Any]

REGISTERED: dict[str, dict[Resource, ActionType]] = {
    "SchedulingGates": {R.POD: GATES},
    "NodeUnschedulable": {R.NODE: A | TAINT, R.POD: TOLERATION},
    "NodeName": {R.NODE: A},
    "TaintToleration": {R.NODE: A | TAINT, R.POD: TOLERATION},
    "NodeAffinity": {R.NODE: A | LABEL},
    "NodePorts": {R.POD: D, R.NODE: A},
    "NodeResourcesFit": {R.POD: D | SHRINK, R.NODE: A | OFFER, R.DEVICE_CLASS: A | U},
    "VolumeRestrictions": {R.POD: D, R.NODE: A, R.PERSISTENT_VOLUME_CLAIM: A},
    "NodeVolumeLimits": {R.CSI_NODE: A | U, R.POD: D, R.PERSISTENT_VOLUME_CLAIM: A, R.VOLUME_ATTACHMENT: D},
    "VolumeBinding": {
        R.STORAGE_CLASS: A | U,
        R.PERSISTENT_VOLUME_CLAIM: A | U,
        R.PERSISTENT_VOLUME: A | U,
        R.NODE: A | LABEL,
        R.CSI_NODE: A | U,
        R.CSI_DRIVER: U,
        R.CSI_STORAGE_CAPACITY: A | U,
    },
    "VolumeZone": {
        R.STORAGE_CLASS: A,
        R.NODE: A | LABEL,
        R.PERSISTENT_VOLUME_CLAIM: A | U,
        R.PERSISTENT_VOLUME: A | U,
    },
    "PodTopologySpread": {R.POD: A | D | POD_LABEL | TOLERATION, R.NODE: A | D | LABEL | TAINT},
    "InterPodAffinity": {R.POD: A | D | POD_LABEL, R.NODE: A | LABEL},
    "DynamicResources": {
        R.NODE: A | LABEL | OFFER,
        R.RESOURCE_CLAIM: A | U,
        R.POD: GENERATED,
        R.DEVICE_CLASS: A | U,
        R.RESOURCE_SLICE: A | U,
    },
    "NodeDeclaredFeatures": {R.NODE: A | FEATURE, R.POD: U},
}


@pytest.mark.parametrize("plugin", [name for name in IN_TREE if hasattr(build(name), "events_to_register")])
def test_the_registrations_are_kube_schedulers(plugin: str) -> None:
    found: dict[Resource, ActionType] = {}
    for registered in build(plugin).events_to_register():
        event = registered.event
        found[event.resource] = found.get(event.resource, ActionType(0)) | event.action
    assert found == REGISTERED.get(plugin, {})


def hint(plugin: str, resource: Resource, action: ActionType) -> Callable[[Any, Any, Any], QueueingHint]:
    """The hint of the registration for the event; one that always queues where it has none."""
    for registered in build(plugin).events_to_register():
        if registered.event.resource is resource and registered.event.action & action:
            return registered.hint or (lambda pod, old, new: QUEUE)
    raise AssertionError(f"{plugin} does not register for {action} of {resource}")


def meta(name: str, **more: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "default", "uid": name, **more}}


def claim(name: str, **more: Any) -> Any:
    return decode(PersistentVolumeClaim, meta(name) | more)


def csi_node(count: int) -> Any:
    drivers = [{"name": "csi.example", "nodeID": "n", "allocatable": {"count": count}}]
    return decode(CSINode, meta("n") | {"spec": {"drivers": drivers}})


def volume(**labels: str) -> Any:
    return decode(PersistentVolume, meta("pv", labels=labels))


def storage_class(mode: str, label: str = "") -> Any:
    terms = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
    more = {"provisioner": "p", "volumeBindingMode": mode, "allowedTopologies": terms}
    return decode(StorageClass, meta("c", labels={"x": label}) | more)


def capacity(left: str) -> Any:
    return decode(CSIStorageCapacity, meta("s") | {"storageClassName": "c", "capacity": left})


def driver(tracks: bool) -> Any:
    return decode(CSIDriver, meta("csi.example") | {"spec": {"storageCapacity": tracks}})


def attachment() -> Any:
    spec = {"attacher": "other.example", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
    return decode(VolumeAttachment, meta("a") | {"spec": spec})


WAITING = (
    make_pod("p")
    .label("app", "web")
    .req(cpu="1")
    .host_port(80)
    .pvc("mine")
    .set("spec.resourceClaims", [{"name": "r", "resourceClaimName": "mine"}])
    .node_selector({"disk": "ssd"})
    .spread("zone", {"app": "web"})
    .pod_anti_affinity("zone", {"app": "web"})
    .info()
)
"""A pod that every plugin could have refused."""
DISKS_ONLY = make_pod("d").set("spec.volumes", [{"name": "v", "gcePersistentDisk": {"pdName": "x"}}]).info()
PLAIN = make_node().taint("gpu").allocatable(cpu="2", memory="1Gi", pods=5).build()
OTHER_LABEL = make_node().taint("gpu").allocatable(cpu="2", memory="1Gi", pods=5).label("x", "y").build()
STRANGER = make_pod("q").label("app", "db").node("n").info()
RELABELLED = make_pod("q").label("app", "cache").node("n").info()

UNRELATED: list[tuple[str, Resource, ActionType, Any, Any]] = [
    ("SchedulingGates", R.POD, GATES, STRANGER, RELABELLED),
    ("NodeUnschedulable", R.NODE, TAINT, PLAIN, OTHER_LABEL),
    ("NodeUnschedulable", R.POD, TOLERATION, STRANGER, RELABELLED),
    ("TaintToleration", R.NODE, TAINT, PLAIN, OTHER_LABEL),
    ("TaintToleration", R.POD, TOLERATION, STRANGER, RELABELLED),
    ("NodeAffinity", R.NODE, LABEL, PLAIN, OTHER_LABEL),
    ("NodePorts", R.POD, D, STRANGER, None),
    ("NodeResourcesFit", R.POD, SHRINK, STRANGER, RELABELLED),
    ("NodeResourcesFit", R.DEVICE_CLASS, A, None, devices.device_class("b", extendedResourceName="b.com/nic")),
    ("NodeResourcesFit", R.NODE, OFFER, PLAIN, OTHER_LABEL),
    ("VolumeRestrictions", R.POD, D, STRANGER, None),
    ("VolumeRestrictions", R.PERSISTENT_VOLUME_CLAIM, A, None, claim("theirs")),
    ("NodeVolumeLimits", R.CSI_NODE, U, csi_node(3), csi_node(2)),
    ("NodeVolumeLimits", R.POD, D, STRANGER, None),
    ("NodeVolumeLimits", R.PERSISTENT_VOLUME_CLAIM, A, None, claim("theirs")),
    ("VolumeBinding", R.STORAGE_CLASS, U, storage_class("Immediate"), storage_class("Immediate", "y")),
    ("VolumeBinding", R.PERSISTENT_VOLUME_CLAIM, U, claim("theirs"), claim("theirs")),
    ("VolumeBinding", R.CSI_NODE, U, csi_node(3), csi_node(2)),
    ("VolumeBinding", R.CSI_DRIVER, U, driver(False), driver(True)),
    ("VolumeBinding", R.CSI_STORAGE_CAPACITY, U, capacity("2Gi"), capacity("1Gi")),
    ("VolumeZone", R.STORAGE_CLASS, A, None, storage_class("Immediate")),
    ("VolumeZone", R.PERSISTENT_VOLUME_CLAIM, U, claim("theirs"), claim("theirs")),
    ("VolumeZone", R.PERSISTENT_VOLUME, U, volume(), volume(disk="ssd")),
    ("PodTopologySpread", R.POD, POD_LABEL, STRANGER, RELABELLED),
    ("PodTopologySpread", R.POD, A, None, STRANGER),
    ("PodTopologySpread", R.NODE, LABEL, PLAIN, OTHER_LABEL),
    ("InterPodAffinity", R.POD, POD_LABEL, STRANGER, RELABELLED),
    ("InterPodAffinity", R.POD, D, STRANGER, None),
    ("InterPodAffinity", R.NODE, LABEL, PLAIN, OTHER_LABEL),
    ("DynamicResources", R.RESOURCE_CLAIM, U, devices.claim(), devices.claim(status={"devices": [{}]})),
    ("DynamicResources", R.POD, GENERATED, STRANGER, RELABELLED),
    ("NodeDeclaredFeatures", R.NODE, FEATURE, PLAIN, OTHER_LABEL),
    ("NodeDeclaredFeatures", R.POD, U, STRANGER, RELABELLED),
]


@pytest.mark.parametrize(("plugin", "resource", "action", "old", "new"), UNRELATED)
def test_an_unrelated_change_wakes_nobody(
    plugin: str, resource: Resource, action: ActionType, old: Any, new: Any
) -> None:
    assert hint(plugin, resource, action)(WAITING, old, new) is SKIP


def test_a_volume_detached_elsewhere_does_not_wake_a_pod_with_a_disk() -> None:
    assert hint("NodeVolumeLimits", R.VOLUME_ATTACHMENT, D)(DISKS_ONLY, attachment(), None) is SKIP


def test_a_node_whose_volumes_are_migrated_is_asked_about_again() -> None:
    migrated = decode(CSINode, meta("n", annotations={"storage.alpha.kubernetes.io/migrated-plugins": "gce-pd"}))
    assert hint("VolumeBinding", R.CSI_NODE, U)(WAITING, csi_node(3), migrated) is QUEUE


def test_of_every_event_with_a_hint_an_unrelated_change_is_tried() -> None:
    tried = {(plugin, resource) for plugin, resource, *_ in UNRELATED} | {("NodeVolumeLimits", R.VOLUME_ATTACHMENT)}
    hinted = {
        (name, registered.event.resource)
        for name in REGISTERED
        for registered in build(name).events_to_register()
        if registered.hint is not None
    }
    assert hinted == tried


P = make_pod("p")
ONE_CPU, RUNS = make_pod("p").req(cpu="1"), make_pod("q").req(cpu="1")
TWO_CPU = make_pod("p").req(cpu="2")
CORDONED, FREE = make_node().unschedulable(), make_node()
TAINTED = make_node().taint("gpu")
TOLERANT = make_pod("p").toleration("gpu", operator="Exists")
SSD, HDD = make_node().label("disk", "ssd"), make_node().label("disk", "hdd")
SSD_ONLY = make_pod().node_selector({"disk": "ssd"})
PORT = make_pod("p").host_port(80)
GATED = make_pod("p").gate("wait")
SPREAD = make_pod("p").label("app", "web").spread("zone", {"app": "web"})
WEB, DB = make_pod("q").label("app", "web").node("a"), make_pod("q").label("app", "db").node("a")
ZONE_A, ZONE_B = make_node().label("zone", "a"), make_node().label("zone", "b")
NEAR, AWAY = make_pod("p").pod_affinity("zone", {"app": "db"}), make_pod("p").pod_anti_affinity("zone", {"app": "db"})
HOSTILE = make_pod("q").node("a").pod_anti_affinity("zone", {"app": "web"})


def room(**amounts: str) -> NodeBuilder:
    return make_node().allocatable(amounts, pods=5)


def runs(name: str = "q", **amounts: str) -> PodBuilder:
    return make_pod(name).req(**amounts).node("a")


RULES = [{"action": "RestartAllContainers"}]
RESTARTING, STRANGE_RESTARTING = (
    make_pod(name).set("spec.containers", [{"name": "r", "restartPolicyRules": RULES}]) for name in "pq"
)
DECLARING = make_node().set("status.declaredFeatures", ["RestartAllContainersOnContainerExits"])
USES, HELD = using("c"), devices.claim(status=allocated("g"))
TEMPLATE = make_pod("p").set("spec.resourceClaims", [{"name": "e", "resourceClaimTemplateName": "t"}])


def made(name: str) -> PodBuilder:
    pod = make_pod(name).set("spec.resourceClaims", [{"name": "e", "resourceClaimTemplateName": "t"}])
    return pod.set("status.resourceClaimStatuses", [{"name": "e", "resourceClaimName": "c"}])


def other(held: bool = False) -> ResourceClaim:
    return devices.claim(name="other", status=allocated("g") if held else None)


GPU_POD = make_pod("p").req({"a.com/gpu": 1})
OF_ITS_NAME, STANDS_FOR_GPUS = (
    devices.device_class("b", **spec) for spec in ({}, {"extendedResourceName": "a.com/gpu"})
)
Shown = NodeBuilder | PodBuilder | ResourceClaim | DeviceClass | None
WAKES: dict[str, list[tuple[str, ActionType, PodBuilder, Shown, Shown, QueueingHint]]] = {
    "fit asks whether the node now has more of what is wanted": [
        ("NodeResourcesFit", OFFER, TWO_CPU, None, room(cpu="4"), QUEUE),
        ("NodeResourcesFit", OFFER, TWO_CPU, None, room(cpu="1"), SKIP),
        ("NodeResourcesFit", OFFER, TWO_CPU, room(cpu="1"), room(cpu="4"), QUEUE),
        ("NodeResourcesFit", OFFER, TWO_CPU, room(cpu="4"), room(cpu="4", memory="9Gi"), SKIP),
        ("NodeResourcesFit", OFFER, TWO_CPU, room(cpu="4"), room(cpu="1"), SKIP),
    ],
    "fit asks whether a class has come to stand for what is wanted": [
        ("NodeResourcesFit", A, GPU_POD, None, STANDS_FOR_GPUS, QUEUE),
        ("NodeResourcesFit", A, GPU_POD, None, OF_ITS_NAME, SKIP),
        ("NodeResourcesFit", A, P, None, STANDS_FOR_GPUS, SKIP),
        ("NodeResourcesFit", A, make_pod("p").req({f"{IMPLICIT}b": 1}), None, OF_ITS_NAME, QUEUE),
        ("NodeResourcesFit", U, GPU_POD, OF_ITS_NAME, STANDS_FOR_GPUS, QUEUE),
        ("NodeResourcesFit", U, GPU_POD, STANDS_FOR_GPUS, STANDS_FOR_GPUS, SKIP),
    ],
    "fit asks whether a pod freed what is wanted": [
        ("NodeResourcesFit", D, ONE_CPU, runs(cpu="1"), None, QUEUE),
        ("NodeResourcesFit", D, ONE_CPU, RUNS, None, SKIP),
        ("NodeResourcesFit", SHRINK, ONE_CPU, runs(memory="2Gi"), runs(memory="1Gi"), SKIP),
        ("NodeResourcesFit", SHRINK, ONE_CPU, runs(cpu="2"), runs(cpu="1"), QUEUE),
    ],
    "uncordoning wakes and cordoning does not": [
        ("NodeUnschedulable", TAINT, P, CORDONED, FREE, QUEUE),
        ("NodeUnschedulable", TAINT, P, FREE, CORDONED, SKIP),
        ("NodeUnschedulable", TAINT, P, None, CORDONED, SKIP),
        ("NodeUnschedulable", TAINT, P, None, FREE, QUEUE),
    ],
    "a taint that goes wakes only who could not tolerate it": [
        ("TaintToleration", TAINT, P, TAINTED, FREE, QUEUE),
        ("TaintToleration", TAINT, P, TAINTED, make_node().taint("other"), SKIP),
        ("TaintToleration", TAINT, TOLERANT, TAINTED, FREE, SKIP),
    ],
    "only a toleration of its own wakes a pod": [
        ("TaintToleration", TOLERATION, P, P, TOLERANT, QUEUE),
        ("TaintToleration", TOLERATION, P, make_pod("q"), make_pod("q").toleration("gpu", operator="Exists"), SKIP),
    ],
    "labels wake a pod only when they come to match": [
        ("NodeAffinity", LABEL, SSD_ONLY, FREE, SSD, QUEUE),
        ("NodeAffinity", LABEL, SSD_ONLY, SSD, make_node().label("disk", "ssd").label("x", "y"), SKIP),
        ("NodeAffinity", LABEL, SSD_ONLY, FREE, HDD, SKIP),
        ("NodeAffinity", LABEL, SSD_ONLY, None, SSD, QUEUE),
    ],
    "a port wakes only who wants it": [
        ("NodePorts", D, PORT, make_pod("q").host_port(80).node("a"), None, QUEUE),
        ("NodePorts", D, PORT, make_pod("q").host_port(81).node("a"), None, SKIP),
        ("NodePorts", D, PORT, make_pod("q").host_port(80), None, SKIP),
        ("NodePorts", D, PORT, make_pod("q").host_port(80, protocol="UDP").node("a"), None, SKIP),
    ],
    "gates wake only their own pod": [
        ("SchedulingGates", GATES, GATED, GATED, P, QUEUE),
        ("SchedulingGates", GATES, GATED, make_pod("q").gate("wait"), make_pod("q"), SKIP),
    ],
    "spreading is woken by pods that count and nodes that move": [
        ("PodTopologySpread", D, SPREAD, WEB, None, QUEUE),
        ("PodTopologySpread", D, SPREAD, DB, None, SKIP),
        ("PodTopologySpread", A, SPREAD, None, make_pod("q").label("app", "web"), SKIP),
        ("PodTopologySpread", POD_LABEL, SPREAD, DB, WEB, QUEUE),
        ("PodTopologySpread", LABEL, SPREAD, ZONE_A, ZONE_B, QUEUE),
        ("PodTopologySpread", LABEL, SPREAD, ZONE_A, make_node().label("zone", "a").label("x", "y"), SKIP),
        ("PodTopologySpread", LABEL, SPREAD, None, FREE, SKIP),
    ],
    "affinity is woken by whom it is about": [
        ("InterPodAffinity", A, NEAR, None, DB, QUEUE),
        ("InterPodAffinity", A, NEAR, None, WEB, SKIP),
        ("InterPodAffinity", A, AWAY, None, DB, SKIP),
        ("InterPodAffinity", D, AWAY, DB, None, QUEUE),
        ("InterPodAffinity", D, make_pod("p").label("app", "web"), HOSTILE, None, QUEUE),
        ("InterPodAffinity", D, make_pod("p").label("app", "db"), HOSTILE, None, SKIP),
        ("InterPodAffinity", A, NEAR, None, ZONE_A, QUEUE),
        ("InterPodAffinity", A, NEAR, None, FREE, SKIP),
        ("InterPodAffinity", A, AWAY, None, FREE, QUEUE),
        ("InterPodAffinity", LABEL, AWAY, ZONE_A, FREE, QUEUE),
    ],
    "a node wakes a pod when it comes to declare what the pod needs": [
        ("NodeDeclaredFeatures", FEATURE, RESTARTING, FREE, DECLARING, QUEUE),
        ("NodeDeclaredFeatures", FEATURE, RESTARTING, None, DECLARING, QUEUE),
        ("NodeDeclaredFeatures", FEATURE, RESTARTING, DECLARING, DECLARING, SKIP),
    ],
    "only its own other needs of a kubelet wake a pod": [
        ("NodeDeclaredFeatures", U, RESTARTING, RESTARTING, P, QUEUE),
        ("NodeDeclaredFeatures", U, RESTARTING, RESTARTING, RESTARTING, SKIP),
        ("NodeDeclaredFeatures", U, RESTARTING, STRANGE_RESTARTING, make_pod("q"), SKIP),
    ],
    "a claim of the pod's own wakes it, and of others one that gives devices back": [
        ("DynamicResources", A, USES, None, devices.claim(), QUEUE),
        ("DynamicResources", A, USES, None, other(), SKIP),
        ("DynamicResources", U, USES, devices.claim(), devices.claim(version=2), SKIP),
        ("DynamicResources", U, USES, devices.claim(), HELD, QUEUE),
        ("DynamicResources", U, USES, HELD, devices.claim(status=allocated("g", users=("x",))), QUEUE),
        ("DynamicResources", U, USES, other(), other(held=True), SKIP),
        ("DynamicResources", U, USES, other(held=True), other(), QUEUE),
    ],
    "the making of its own claims wakes a pod": [
        ("DynamicResources", GENERATED, TEMPLATE, TEMPLATE, made("p"), QUEUE),
        ("DynamicResources", GENERATED, TEMPLATE, TEMPLATE, TEMPLATE, SKIP),
        ("DynamicResources", GENERATED, TEMPLATE, None, made("other"), SKIP),
    ],
}
"""Sentence -> (plugin, what happens, the refused pod, the object before and after, the answer)."""


RESOURCES: dict[type, Resource] = {
    NodeBuilder: R.NODE,
    PodBuilder: R.POD,
    ResourceClaim: R.RESOURCE_CLAIM,
    DeviceClass: R.DEVICE_CLASS,
}


@pytest.mark.parametrize("sentence", WAKES)
def test_what_wakes_a_pod(sentence: str) -> None:
    for plugin, action, pod, old, new, expected in WAKES[sentence]:
        objects = [one.info() if isinstance(one, PodBuilder) else one for one in (old, new)]
        objects = [one.build() if isinstance(one, NodeBuilder) else one for one in objects]
        resource = RESOURCES[type(new or old)]
        assert hint(plugin, resource, action)(pod.info(), *objects) is expected, (plugin, action, old, new)


@pytest.mark.parametrize("plugin", ["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"])
def test_claims_wake_their_pods(plugin: str) -> None:
    pod = make_pod("p").pvc("data").info()
    assert hint(plugin, R.PERSISTENT_VOLUME_CLAIM, A)(pod, None, claim("data")) is QUEUE


def test_every_plugin_that_filters_registers_something() -> None:
    for entry in IN_TREE.values():
        if entry.filters:
            assert build(entry.name).events_to_register(), entry.name
