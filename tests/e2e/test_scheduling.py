"""The whole of it over real HTTP: an API server, `policyengine run`, and the real kubectl.

Runs against the embedded server, and against the real one where `$KUBEBUILDER_ASSETS` names its binaries.
"""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import POLICIES, Kubectl, pod, policy_map, scheduler, served

POLICY = str(Path(__file__).resolve().parent.parent.parent / "policies" / "riya.policy")
PIN = """policy "pin" {{
  scheduler "{scheduler}"
  filter "pinned" {{ require node.name == "{node}" else "only {node} will do" }}
}}
"""
BROKEN = """policy "pin" {
  scheduler "pinned"
  filter "x" { require nod.name == "" }
}
"""
STATUS = r"jsonpath={.metadata.annotations.policyengine\.io/status}"

_numbers = iter(range(1000))


@pytest.fixture(scope="module", params=["embedded", "envtest"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served(request.param, tmp_path_factory.mktemp("cluster")) as kubeconfig:
        yield kubeconfig


@pytest.fixture(scope="module", autouse=True)
def serving(cluster: Path) -> Iterator[subprocess.Popen[str]]:
    """A scheduler, the same for all tests; the last one ends it."""
    with scheduler(cluster, f"--policy={POLICY}") as child:
        yield child


@pytest.fixture
def kubectl(cluster: Path) -> Iterator[Kubectl]:
    """kubectl in a namespace of its own; its pods and the policies are gone at the end."""
    namespace = f"test-{next(_numbers)}"
    found = Kubectl(cluster, namespace)
    found("create", "namespace", namespace)
    yield found
    found("delete", "pods", "--all", "--wait=false")
    found("delete", "configmaps", "-n", POLICIES, "-l", "policyengine.io/policy=true")


def status_of(kubectl: Kubectl, name: str, state: str) -> dict[str, Any]:
    kubectl("wait", "-n", POLICIES, f"configmap/{name}", f"--for={STATUS}", "--timeout=60s")
    for _ in range(100):
        found: dict[str, Any] = json.loads(kubectl("get", "-n", POLICIES, "configmap", name, "-o", STATUS))
        if found["state"] == state:
            return found
    raise AssertionError(f"{name} never became {state}: {found}")


def test_a_pod_is_scheduled_by_a_policy_and_described_as_kube_scheduler_would(kubectl: Kubectl) -> None:
    kubectl.apply(pod("small"), pod("huge", cpu="64"))
    kubectl.until("pod/small", "jsonpath={.status.phase}=Running")
    kubectl.until("pod/huge", "condition=PodScheduled=false")
    namespace, node = kubectl.namespace, kubectl.node_of("small")
    described = kubectl("describe", "pod", "small")
    assert re.search(
        rf"Normal +Scheduled .*policy-scheduler +Successfully assigned {namespace}/small to {node}", described
    )
    refused = kubectl("describe", "pod", "huge")
    assert re.search(r"Warning +FailedScheduling .*policy-scheduler +0/2 nodes are available: 2 Insuff", refused)
    condition = json.loads(kubectl("get", "pod", "huge", "-o", "json"))["status"]["conditions"][0]
    assert (condition["reason"], condition["status"]) == ("Unschedulable", "False")
    assert condition["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_a_policy_is_replaced_by_kubectl_apply_and_a_broken_one_changes_nothing(kubectl: Kubectl) -> None:
    kubectl.apply(policy_map("pin", PIN.format(scheduler="pinned", node="node-1")))
    accepted = status_of(kubectl, "pin", "accepted")
    assert re.fullmatch(r"[0-9a-f]{64}", accepted["hash"])
    kubectl.apply(pod("a", scheduler_name="pinned"))
    kubectl.until("pod/a", "jsonpath={.spec.nodeName}=node-1")

    kubectl.apply(policy_map("pin", BROKEN))
    rejected = status_of(kubectl, "pin", "rejected")
    assert rejected["line"] == 3
    assert "`nod`" in rejected["message"]
    assert rejected["hash"] == accepted["hash"]
    assert rejected["dataHash"] != accepted["dataHash"]
    kubectl.apply(pod("b", scheduler_name="pinned"))
    kubectl.until("pod/b", "jsonpath={.spec.nodeName}=node-1")

    kubectl.apply(policy_map("pin", PIN.format(scheduler="pinned", node="node-2")))
    assert status_of(kubectl, "pin", "accepted")["hash"] != accepted["hash"]
    kubectl.apply(pod("c", scheduler_name="pinned"))
    kubectl.until("pod/c", "jsonpath={.spec.nodeName}=node-2")


def test_a_scheduler_goes_on_beside_a_node_without_allocatable_and_a_malformed_pod(kubectl: Kubectl) -> None:
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}})
    try:
        malformed = kubectl("apply", "-f", "-", stdin=json.dumps(pod("odd", cpu="lots")), check=False)
        assert "quantities must match" in malformed or "invalid" in malformed.lower()
        kubectl.apply(pod("fine"))
        kubectl.until("pod/fine", "jsonpath={.status.phase}=Running")
        assert kubectl.node_of("fine") in ("node-1", "node-2")
    finally:
        kubectl("delete", "node", "bare")


def test_sigterm_ends_cleanly_and_a_restart_goes_on(
    cluster: Path, serving: subprocess.Popen[str], kubectl: Kubectl
) -> None:
    kubectl.apply(pod("before"))
    kubectl.until("pod/before", "jsonpath={.status.phase}=Running")
    serving.send_signal(signal.SIGTERM)
    out, _ = serving.communicate(timeout=30)
    assert serving.returncode == 0, out
    assert "Traceback" not in out
    kubectl.apply(pod("between"))
    with scheduler(cluster, f"--policy={POLICY}"):
        kubectl.until("pod/between", "jsonpath={.status.phase}=Running")
