"""Devices over real HTTP: a claim is allocated and reserved by the scheduler's account before the pod is bound.

Runs against the embedded server, and against the real one where `$KUBEBUILDER_ASSETS` names its binaries.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Kubectl, pod, scheduler, served

POLICY = str(Path(__file__).resolve().parent.parent.parent / "policies" / "riya.policy")
DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"
CREW = """policy "crew" {
  scheduler "policy-scheduler"

  gang "crew" when pod.labels[?"crew"].orValue("") != "" {
    key: pod.labels["crew"]
    min: 5
    timeout: 60s
  }
}
"""


@pytest.fixture(scope="module", params=["embedded", "envtest"])
def kubectl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with served(request.param, tmp_path_factory.mktemp("cluster")) as kubeconfig:
        found = Kubectl(kubeconfig, "default")
        found.apply(device_class("gpu", DRIVER))
        found.apply(devices("node-2"))
        yield found


def device_class(name: str, driver: str) -> dict[str, Any]:
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def devices(node: str, driver: str = DRIVER) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpu"}, "spec": spec}


def claim(name: str, of: str = "gpu") -> dict[str, Any]:
    requests = [{"name": "one", "exactly": {"deviceClassName": of}}]
    spec = {"devices": {"requests": requests}}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def with_claim(name: str, claim: str) -> dict[str, Any]:
    item = pod(name)
    item["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    item["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return item


def test_a_claim_is_allocated_where_its_device_is_and_a_second_one_waits(kubectl: Kubectl) -> None:
    with scheduler(kubectl.kubeconfig, f"--policy={POLICY}"):
        kubectl.apply(claim("first"))
        kubectl.apply(with_claim("takes", "first"))
        kubectl.until("pod/takes", "jsonpath={.spec.nodeName}=node-2")
        status = json.loads(kubectl("get", "resourceclaim", "first", "-o", "json"))["status"]
        taken = status["allocation"]["devices"]["results"]
        assert [(one["driver"], one["pool"], one["device"]) for one in taken] == [(DRIVER, "node-2", "gpu-0")]
        uid = kubectl("get", "pod", "takes", "-o", "jsonpath={.metadata.uid}")
        assert [user["uid"] for user in status["reservedFor"]] == [uid]

        kubectl.apply(claim("second"))
        kubectl.apply(with_claim("waits", "second"))
        kubectl.until("pod/waits", "condition=PodScheduled=false")
        assert "allocation" not in json.loads(kubectl("get", "resourceclaim", "second", "-o", "json")).get("status", {})


def test_a_gang_whose_pods_share_one_claim_is_bound_whole_where_its_device_is(kubectl: Kubectl, tmp_path: Path) -> None:
    policy = tmp_path / "crew.policy"
    policy.write_text(CREW, encoding="utf-8")
    with scheduler(kubectl.kubeconfig, f"--policy={policy}"):
        kubectl.apply(device_class("fpga", "fpga.example.com"))
        kubectl.apply(devices("node-1", "fpga.example.com"))
        kubectl.apply(claim("shared", "fpga"))
        crew = [with_claim(f"crew-{number}", "shared") for number in range(5)]
        for one in crew:
            one["metadata"]["labels"] = {"crew": "a"}
            kubectl.apply(one)
        for one in crew:
            kubectl.until(f"pod/{one['metadata']['name']}", "jsonpath={.spec.nodeName}=node-1")
        found = json.loads(kubectl("get", "resourceclaim", "shared", "-o", "json"))["status"]
        members = json.loads(kubectl("get", "pods", "-l", "crew=a", "-o", "json"))["items"]
        assert {user["uid"] for user in found["reservedFor"]} == {one["metadata"]["uid"] for one in members}
