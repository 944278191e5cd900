"""Pods with volumes over real HTTP; kubectl stands in for the volume controller and the provisioner.

Runs against the embedded server, and against the real one where `$KUBEBUILDER_ASSETS` names its binaries.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Kubectl, pod, scheduler, served

POLICY = str(Path(__file__).resolve().parent.parent.parent / "policies" / "riya.policy")
SELECTED = r"{.metadata.annotations.volume\.kubernetes\.io/selected-node}"
BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


@pytest.fixture(scope="module", params=["embedded", "envtest"])
def kubectl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with served(request.param, tmp_path_factory.mktemp("cluster")) as kubeconfig:
        found = Kubectl(kubeconfig, "default")
        found.apply(storage_class("local", "kubernetes.io/no-provisioner"), storage_class("made", "example.com/disks"))
        yield found


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, of: str) -> dict[str, Any]:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "resources": resources}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def disk(name: str, of: str, on: str, **more: Any) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    spec = {
        "storageClassName": of,
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/mnt/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**spec, **more}}


def with_claim(name: str, claim: str) -> dict[str, Any]:
    item = pod(name)
    item["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return item


def bind(kubectl: Kubectl, claim: str, volume: str) -> None:
    """What the volume controller does last."""
    change = {"metadata": {"annotations": BOUND}, "spec": {"volumeName": volume}}
    kubectl("patch", "pvc", claim, "--type=merge", "-p", json.dumps(change))


def test_a_pod_goes_to_its_local_disk_and_is_bound_once_its_claim_is(kubectl: Kubectl) -> None:
    with scheduler(kubectl.kubeconfig, f"--policy={POLICY}"):
        kubectl.apply(disk("disk", "local", "node-2"), claim("local", "local"))
        kubectl("patch", "pv", "disk", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Available"}}')
        kubectl.apply(with_claim("on-disk", "local"))
        kubectl.until("pv/disk", "jsonpath={.spec.claimRef.name}=local")
        taken = json.loads(kubectl("get", "pv", "disk", "-o", "json"))
        assert taken["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
        assert taken["spec"]["claimRef"]["uid"] == kubectl("get", "pvc", "local", "-o", "jsonpath={.metadata.uid}")
        assert kubectl.node_of("on-disk") == ""
        bind(kubectl, "local", "disk")
        kubectl.until("pod/on-disk", "jsonpath={.spec.nodeName}=node-2")


def test_a_volume_is_made_where_the_pod_is_placed(kubectl: Kubectl) -> None:
    with scheduler(kubectl.kubeconfig, f"--policy={POLICY}"):
        kubectl.apply(claim("made", "made"), with_claim("waits", "made"))
        kubectl("wait", "pvc/made", f"--for=jsonpath={SELECTED}", "--timeout=60s")
        found = json.loads(kubectl("get", "pvc", "made", "-o", "json"))
        node = found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
        assert node in ("node-1", "node-2")
        assert kubectl.node_of("waits") == ""
        ref = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": "default",
            "name": "made",
            "uid": found["metadata"]["uid"],
        }
        kubectl.apply(disk("new", "made", node, claimRef=ref))
        bind(kubectl, "made", "new")
        kubectl.until("pod/waits", f"jsonpath={{.spec.nodeName}}={node}")
