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


@pytest.fixture(scope="module", params=["embedded", "envtest"])
def kubectl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with served(request.param, tmp_path_factory.mktemp("cluster")) as kubeconfig:
        found = Kubectl(kubeconfig, "default")
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        found.apply(
            {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}
        )
        found.apply(devices("node-2"))
        yield found


def devices(node: str) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpu"}, "spec": spec}


def claim(name: str) -> dict[str, Any]:
    requests = [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]
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
