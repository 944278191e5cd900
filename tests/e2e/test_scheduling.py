"""The whole of it over real HTTP: an API server, `policyengine run`, and the real kubectl.

Runs against the embedded server, and against the real one where `$KUBEBUILDER_ASSETS` names its binaries.
"""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.manifests import DEPLOY
from tests.e2e.cluster import POLICIES, Kubectl, pod, policy_map, scheduler, served
from tests.waiting import asked_until

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


@pytest.fixture(autouse=True)
def serving(cluster: Path) -> Iterator[subprocess.Popen[str]]:
    """A scheduler, for one test: some end it."""
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


MEMBERS = """policy "members" {
  scheduler "members"
  quota "a" when pod.labels[?"team"].orValue("") == "a" { limit: {cpu: 1} }
  permit "slow" when pod.name == "held" { delay: 1s }
  bind { annotations: {"example.com/placed": "on {node.name}, {node.free.cpu} left"} }
}
"""


def test_annotations_of_a_binding_a_quota_and_a_delay_act_on_the_server(kubectl: Kubectl) -> None:
    kubectl.apply(policy_map("members", MEMBERS))
    status_of(kubectl, "members", "accepted")
    first = pod("first", cpu="1", scheduler_name="members", team="a")
    first["metadata"]["annotations"] = {"example.com/own": "stays"}
    kubectl.apply(first)
    kubectl.until("pod/first", "jsonpath={.spec.nodeName}")
    annotations = json.loads(kubectl("get", "pod", "first", "-o", "json"))["metadata"]["annotations"]
    assert annotations["example.com/own"] == "stays"
    assert annotations["example.com/placed"].startswith(f"on {kubectl.node_of('first')}, ")
    kubectl.apply(pod("second", cpu="1", scheduler_name="members", team="a"))
    kubectl.until("pod/second", "condition=PodScheduled=false")
    assert "quota a: 1 of 1 cpu are in use, the pod asks for 1" in kubectl("describe", "pod", "second")
    began = time.monotonic()
    kubectl.apply(pod("held", scheduler_name="members"))
    kubectl.until("pod/held", "jsonpath={.spec.nodeName}")
    assert time.monotonic() - began >= 0.9


PLACED = 'policy "placed" {\n  scheduler "placed"\n  filter "there" { require node.name == "node-2" }\n}\n'


def policy(text: str = PLACED, key: str = "a.policy", **fields: Any) -> dict[str, Any]:
    meta = {"name": "placed", "namespace": POLICIES}
    kind = {"apiVersion": "policyengine.io/v1alpha1", "kind": "SchedulingPolicy"}
    return {**kind, "metadata": meta, "spec": {"policies": {key: text}, **fields}}


REFUSED = [
    (policy(key="a"), "spec.policies: Invalid value: a name under spec.policies ends in .policy: `web.policy`"),
    (policy(mode="Canary"), "a canary needs spec.canary: which pods are its own?"),
    (policy(canary={"percent": 5}), "spec.canary is for the mode Canary"),
    (policy(budget={"least": 3}), "spec.budget is for the modes Shadow and Canary"),
    (policy(mode="shadow"), 'spec.mode: Unsupported value: "shadow"'),
    (policy(mode="Shadow", shadow={"sample": "all"}), "spec.shadow.sample in body should match"),
    (policy(policies={}), "spec.policies in body should have at least 1 properties"),
    (policy(polices={}), 'unknown field "spec.polices"'),
]


def kstatus(item: dict[str, Any]) -> str:
    """What Flux and kubectl's kstatus make of an object: the generic rules of sigs.k8s.io/cli-utils/pkg/kstatus."""
    status = item.get("status", {})
    rows = {row["type"]: row["status"] for row in status.get("conditions", ())}
    if status.get("observedGeneration", item["metadata"]["generation"]) != item["metadata"]["generation"]:
        return "InProgress"
    if rows.get("Stalled") == "True":
        return "Failed"
    return "InProgress" if rows.get("Reconciling") == "True" or rows.get("Ready", "True") != "True" else "Current"


def test_a_scheduling_policy_is_applied_refused_waited_for_listed_and_described(
    cluster: Path, kubectl: Kubectl
) -> None:
    """As a person or a GitOps tool meets it."""
    policies = Kubectl(cluster, POLICIES)
    policies("apply", "-f", str(DEPLOY / "base" / "schedulingpolicies.yaml"))
    policies.until("crd/schedulingpolicies.policyengine.io", "condition=Established")
    for item, message in REFUSED:
        assert message in policies("apply", "-f", "-", stdin=json.dumps(item), check=False), item["spec"]
    policies.apply(policy())
    policies.until("schedulingpolicy/placed", "condition=Ready")
    header, row = policies("get", "spol").splitlines()
    assert header.split()[1:] == ["SCHEDULERS", "MODE", "ACCEPTED", "TESTED", "SERVING", "REASON", "AGE"]
    assert row.split()[:-1] == ["placed", '["placed"]', "Serve", "True", "True", "True", "Serving"]
    assert kstatus(_read(policies)) == "Current"
    assert "policies" in policies("explain", "schedulingpolicy.spec")
    policies.apply(policy(PLACED.replace("node.name", "nod.name")))
    policies.until("schedulingpolicy/placed", "condition=Stalled")
    assert kstatus(_read(policies)) == "Failed"
    (row,) = policies("get", "spol", "-o", "wide", "--no-headers").splitlines()
    assert row.split()[3:7] == ["False", "Unknown", "True", "Invalid"] and "line 3, column 28: " in row
    rejected = re.compile(r"Warning +PolicyRejected .* \(line 3, column 28\)")
    asked_until(lambda said: rejected.search(said) is not None, lambda: policies("describe", "spol", "placed"))
    kubectl.apply(pod("one", scheduler_name="placed"))
    kubectl.until("pod/one", "jsonpath={.status.phase}=Running")
    assert kubectl.node_of("one") == "node-2"
    policies.apply(policy(PLACED + "// better\n"))
    policies.until("schedulingpolicy/placed", "condition=Ready")
    assert "Stalled" not in {row["type"] for row in _read(policies)["status"]["conditions"]}


def _read(policies: Kubectl) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(policies("get", "spol", "placed", "-o", "json"))
    return found


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
