"""Preemption over real HTTP: the victim is deleted with its condition, and the pod of the higher class takes its place.

Runs against the embedded server, and against the real one where `$KUBEBUILDER_ASSETS` names its binaries.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Kubectl, pod, scheduler, served

POLICY = str(Path(__file__).resolve().parent.parent.parent / "policies" / "riya.policy")


@pytest.fixture(scope="module", params=["embedded", "envtest"])
def kubectl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    with served(request.param, tmp_path_factory.mktemp("cluster"), nodes=1) as kubeconfig:
        found = Kubectl(kubeconfig, "default")
        for name, value in (("low", -10), ("high", 1000)):
            found("create", "priorityclass", name, f"--value={value}")
        found("create", "priorityclass", "polite", "--value=1000", "--preemption-policy=Never")
        yield found


def of_class(name: str, priority_class: str, cpu: str) -> dict[str, Any]:
    item = pod(name, cpu=cpu)
    item["spec"]["priorityClassName"] = priority_class
    return item


def test_a_pod_takes_the_place_of_one_of_a_lower_class(kubectl: Kubectl) -> None:
    with scheduler(kubectl.kubeconfig, f"--policy={POLICY}"):
        kubectl.apply(of_class("victim", "low", "3"))
        kubectl.until("pod/victim", "jsonpath={.status.phase}=Running")
        kubectl.apply(of_class("polite", "polite", "3"))
        kubectl.until("pod/polite", "condition=PodScheduled=false")
        assert json.loads(kubectl("get", "pod", "polite", "-o", "json"))["spec"]["preemptionPolicy"] == "Never"
        kubectl("get", "pod", "victim")
        kubectl("delete", "pod", "polite")
        kubectl.apply(of_class("urgent", "high", "3"))
        kubectl("wait", "--for=delete", "pod/victim", "--timeout=60s")
        kubectl.until("pod/urgent", "jsonpath={.status.phase}=Running")
        assert "Preempted" in kubectl("events", "--for=pod/victim")
