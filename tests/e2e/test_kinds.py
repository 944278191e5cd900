"""Volumes, devices, groups and priorities over real HTTP, with the rights of the scheduler's account; kubectl stands in
for the volume controller and the provisioner.

Runs against the embedded server, and against the real one where `$KUBEBUILDER_ASSETS` names its binaries.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.account import BY_CERTIFICATE, BY_TOKEN, SCHEDULER
from tests.e2e.cluster import Kubectl, pod, scheduler, served

ROOT = Path(__file__).resolve().parents[2]
CRD = str(ROOT / "deploy" / "base" / "podgroups.yaml")
DRIVER = "gpu.example.com"
DEVICES = "resource.k8s.io/v1"
SELECTED = r"{.metadata.annotations.volume\.kubernetes\.io/selected-node}"
BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
CREW = """policy "crew" {
  scheduler "crew-scheduler"

  gang "crew" when pod.labels[?"crew"].orValue("") != "" {
    key: pod.labels["crew"]
    min: 5
    timeout: 60s
  }
}
"""


@pytest.fixture(scope="module", params=["embedded", "envtest"])
def kubectl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A cluster of two nodes with a scheduler; on the embedded server it shows its account's certificate, no token."""
    folder = tmp_path_factory.mktemp("cluster")
    crew = folder / "crew.policy"
    crew.write_text(CREW, encoding="utf-8")
    policies = (ROOT / "policies" / "riya.policy", ROOT / "policies" / "pod-groups.policy", crew)
    shown = BY_CERTIFICATE if request.param == "embedded" else BY_TOKEN
    given = [f"--policy={one}" for one in policies]
    with served(request.param, folder) as kubeconfig, scheduler(kubeconfig, *given, credentials=shown):
        whoami = Kubectl(kubeconfig.with_name(shown), "default")("auth", "whoami")
        assert SCHEDULER.name in whoami and "system:serviceaccounts:kube-system" in whoami
        yield Kubectl(kubeconfig, "default")


def of_kind(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


# --- priorities ------------------------------------------------------------------------------------------


def of_class(name: str, priority_class: str) -> dict[str, Any]:
    """A pod that takes most of the first node."""
    item = pod(name, cpu="3")
    item["spec"] |= {"priorityClassName": priority_class, "nodeSelector": {"kubernetes.io/hostname": "node-1"}}
    return item


def test_a_pod_takes_the_place_of_one_of_a_lower_class(kubectl: Kubectl) -> None:
    for name, value in (("low", -10), ("high", 1000)):
        kubectl("create", "priorityclass", name, f"--value={value}")
    kubectl("create", "priorityclass", "polite", "--value=1000", "--preemption-policy=Never")
    kubectl.apply(of_class("victim", "low"))
    kubectl.until("pod/victim", "jsonpath={.status.phase}=Running")
    kubectl.apply(of_class("polite", "polite"))
    kubectl.until("pod/polite", "condition=PodScheduled=false")
    assert json.loads(kubectl("get", "pod", "polite", "-o", "json"))["spec"]["preemptionPolicy"] == "Never"
    kubectl("get", "pod", "victim")
    kubectl("delete", "pod", "polite")
    kubectl.apply(of_class("urgent", "high"))
    kubectl("wait", "--for=delete", "pod/victim", "--timeout=60s")
    kubectl.until("pod/urgent", "jsonpath={.status.phase}=Running")
    assert "Preempted" in kubectl("events", "--for=pod/victim")
    kubectl("delete", "pod", "urgent")


# --- volumes ---------------------------------------------------------------------------------------------


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    fields = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    return of_kind("storage.k8s.io/v1", "StorageClass", name, **fields)


def volume_claim(name: str) -> dict[str, Any]:
    """One of the class of its name."""
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": resources}
    return of_kind("v1", "PersistentVolumeClaim", name, spec=spec)


def disk(name: str, of: str, on: str, **more: Any) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    spec = {
        "storageClassName": of,
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/mnt/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    return of_kind("v1", "PersistentVolume", name, spec=spec | more)


def with_volume(name: str, claim: str) -> dict[str, Any]:
    item = pod(name)
    item["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return item


def bind(kubectl: Kubectl, claim: str, volume: str) -> None:
    """What the volume controller does last."""
    change = {"metadata": {"annotations": BOUND}, "spec": {"volumeName": volume}}
    kubectl("patch", "pvc", claim, "--type=merge", "-p", json.dumps(change))


def test_a_pod_goes_to_its_local_disk_and_is_bound_once_its_claim_is(kubectl: Kubectl) -> None:
    kubectl.apply(storage_class("local", "kubernetes.io/no-provisioner"))
    kubectl.apply(disk("disk", "local", "node-2"), volume_claim("local"))
    kubectl("patch", "pv", "disk", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Available"}}')
    kubectl.apply(with_volume("on-disk", "local"))
    kubectl.until("pv/disk", "jsonpath={.spec.claimRef.name}=local")
    taken = json.loads(kubectl("get", "pv", "disk", "-o", "json"))
    assert taken["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert taken["spec"]["claimRef"]["uid"] == kubectl("get", "pvc", "local", "-o", "jsonpath={.metadata.uid}")
    assert kubectl.node_of("on-disk") == ""
    bind(kubectl, "local", "disk")
    kubectl.until("pod/on-disk", "jsonpath={.spec.nodeName}=node-2")


def test_a_volume_is_made_where_the_pod_is_placed(kubectl: Kubectl) -> None:
    kubectl.apply(
        storage_class("made", "example.com/disks"), volume_claim("made"), with_volume("waits-for-disk", "made")
    )
    kubectl("wait", "pvc/made", f"--for=jsonpath={SELECTED}", "--timeout=60s")
    meta = json.loads(kubectl("get", "pvc", "made", "-o", "json"))["metadata"]
    node = meta["annotations"]["volume.kubernetes.io/selected-node"]
    assert node in ("node-1", "node-2")
    assert kubectl.node_of("waits-for-disk") == ""
    ref = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default"}
    kubectl.apply(disk("new", "made", node, claimRef=ref | {"name": "made", "uid": meta["uid"]}))
    bind(kubectl, "made", "new")
    kubectl.until("pod/waits-for-disk", f"jsonpath={{.spec.nodeName}}={node}")


# --- devices ---------------------------------------------------------------------------------------------


def device_class(name: str, driver: str) -> dict[str, Any]:
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
    return of_kind(DEVICES, "DeviceClass", name, spec=spec)


def devices(node: str, driver: str = DRIVER) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return of_kind(DEVICES, "ResourceSlice", f"{node}-gpu", spec=spec)


def device_claim(name: str, of: str = "gpu") -> dict[str, Any]:
    requests = [{"name": "one", "exactly": {"deviceClassName": of}}]
    return of_kind(DEVICES, "ResourceClaim", name, spec={"devices": {"requests": requests}})


def with_device(name: str, claim: str, **more: str) -> dict[str, Any]:
    item = pod(name, **more)
    item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    item["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return item


def test_a_claim_is_allocated_where_its_device_is_and_a_second_one_waits(kubectl: Kubectl) -> None:
    kubectl.apply(device_class("gpu", DRIVER), devices("node-2"))
    kubectl.apply(device_claim("first"), with_device("takes", "first"))
    kubectl.until("pod/takes", "jsonpath={.spec.nodeName}=node-2")
    status = json.loads(kubectl("get", "resourceclaim", "first", "-o", "json"))["status"]
    taken = status["allocation"]["devices"]["results"]
    assert [(one["driver"], one["pool"], one["device"]) for one in taken] == [(DRIVER, "node-2", "gpu-0")]
    uid = kubectl("get", "pod", "takes", "-o", "jsonpath={.metadata.uid}")
    assert [user["uid"] for user in status["reservedFor"]] == [uid]

    kubectl.apply(device_claim("second"), with_device("waits", "second"))
    kubectl.until("pod/waits", "condition=PodScheduled=false")
    assert "allocation" not in json.loads(kubectl("get", "resourceclaim", "second", "-o", "json")).get("status", {})


def test_a_gang_whose_pods_share_one_claim_is_bound_whole_where_its_device_is(kubectl: Kubectl) -> None:
    kubectl.apply(device_class("fpga", "fpga.example.com"), devices("node-1", "fpga.example.com"))
    kubectl.apply(device_claim("shared", "fpga"))
    crew = [f"crew-{number}" for number in range(5)]
    for one in crew:
        kubectl.apply(with_device(one, "shared", scheduler_name="crew-scheduler", crew="a"))
    for one in crew:
        kubectl.until(f"pod/{one}", "jsonpath={.spec.nodeName}=node-1")
    found = json.loads(kubectl("get", "resourceclaim", "shared", "-o", "json"))["status"]
    members = json.loads(kubectl("get", "pods", "-l", "crew=a", "-o", "json"))["items"]
    assert {user["uid"] for user in found["reservedFor"]} == {one["metadata"]["uid"] for one in members}


# --- groups ----------------------------------------------------------------------------------------------


def grouped(name: str, **labels: str) -> dict[str, Any]:
    return pod(name, scheduler_name="pod-group-scheduler", **labels)


def test_pods_of_a_pod_group_run_together_and_its_status_says_so(kubectl: Kubectl) -> None:
    # The kind is not served yet: the scheduler runs all the same.
    kubectl.apply(grouped("alone"))
    kubectl.until("pod/alone", "jsonpath={.status.phase}=Running")
    kubectl("apply", "-f", CRD)
    kubectl.until("crd/podgroups.scheduling.x-k8s.io", "condition=Established")
    kubectl.apply(of_kind("scheduling.x-k8s.io/v1alpha1", "PodGroup", "crew", spec={"minMember": 2}))
    label = {"scheduling.x-k8s.io/pod-group": "crew"}
    kubectl.apply(grouped("one", **label))
    kubectl.until("pod/one", "condition=PodScheduled=false")
    assert "1 of 2 members exist" in kubectl("describe", "pod", "one")
    kubectl.until("podgroup/crew", "jsonpath={.status.phase}=Pending")
    kubectl.apply(grouped("two", **label))
    for name in ("one", "two"):
        kubectl.until(f"pod/{name}", "jsonpath={.status.phase}=Running")
    kubectl.until("podgroup/crew", "jsonpath={.status.phase}=Running")
    status = json.loads(kubectl("get", "podgroup", "crew", "-o", "json"))["status"]
    assert (status["scheduled"], status["running"]) == (2, 2)
