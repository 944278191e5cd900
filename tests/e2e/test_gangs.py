"""Gangs over real HTTP: PodGroup objects of scheduler-plugins, and gangs by labels that contend for room."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Kubectl, pod, scheduler, served

ROOT = Path(__file__).resolve().parents[2]
POLICY = str(ROOT / "policies" / "pod-groups.policy")
CRD = str(ROOT / "deploy" / "base" / "podgroups.yaml")
NAME = "pod-group-scheduler"
GROUP = "scheduling.x-k8s.io/pod-group"


@pytest.fixture(scope="module", params=["embedded", "envtest"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served(request.param, tmp_path_factory.mktemp("cluster")) as kubeconfig:
        yield kubeconfig


def pod_group(name: str, least: int) -> dict:
    api = "scheduling.x-k8s.io/v1alpha1"
    return {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": least}}


def test_pods_of_a_pod_group_run_together_and_its_status_says_so(cluster: Path) -> None:
    kubectl = Kubectl(cluster, "default")
    with scheduler(cluster, f"--policy={POLICY}"):
        # The kind is not served yet: the scheduler runs all the same.
        kubectl.apply(pod("alone", scheduler_name=NAME))
        kubectl.until("pod/alone", "jsonpath={.status.phase}=Running")
        kubectl("apply", "-f", CRD)
        kubectl.until("crd/podgroups.scheduling.x-k8s.io", "condition=Established")
        kubectl.apply(pod_group("crew", 2))
        kubectl.apply(pod("one", scheduler_name=NAME, **{GROUP: "crew"}))
        kubectl.until("pod/one", "condition=PodScheduled=false")
        assert "1 of 2 members exist" in kubectl("describe", "pod", "one")
        kubectl.until("podgroup/crew", "jsonpath={.status.phase}=Pending")
        kubectl.apply(pod("two", scheduler_name=NAME, **{GROUP: "crew"}))
        for name in ("one", "two"):
            kubectl.until(f"pod/{name}", "jsonpath={.status.phase}=Running")
        kubectl.until("podgroup/crew", "jsonpath={.status.phase}=Running")
        status = json.loads(kubectl("get", "podgroup", "crew", "-o", "json"))["status"]
        assert (status["scheduled"], status["running"]) == (2, 2)
