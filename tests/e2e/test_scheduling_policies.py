"""SchedulingPolicies as a person or a GitOps tool meets them: applied, refused, waited for, listed, described.

Runs against the embedded server, and against the real one where `$KUBEBUILDER_ASSETS` names its binaries.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.manifests import DEPLOY
from tests.e2e.cluster import POLICIES, Kubectl, pod, scheduler, served

PIN = 'policy "pin" {\n  scheduler "pinned"\n  filter "there" { require node.name == "node-2" }\n}\n'


def policy(text: str = PIN, key: str = "a.policy", **fields: Any) -> dict[str, Any]:
    meta = {"name": "pin", "namespace": POLICIES}
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


@pytest.mark.parametrize("kind", ["embedded", "envtest"])
def test_one_is_applied_refused_waited_for_and_listed(kind: str, tmp_path: Path) -> None:
    with served(kind, tmp_path) as admin:
        kubectl = Kubectl(admin, POLICIES)
        kubectl("apply", "-f", str(DEPLOY / "base" / "schedulingpolicies.yaml"))
        kubectl.until("crd/schedulingpolicies.policyengine.io", "condition=Established")
        assert "policies" in kubectl("explain", "schedulingpolicy.spec")
        for item, message in REFUSED:
            assert message in kubectl("apply", "-f", "-", stdin=json.dumps(item), check=False), item["spec"]
        with scheduler(admin):
            kubectl.apply(policy())
            kubectl.until("schedulingpolicy/pin", "condition=Ready")
            header, row = kubectl("get", "spol").splitlines()
            assert header.split()[1:] == ["SCHEDULERS", "MODE", "ACCEPTED", "TESTED", "SERVING", "REASON", "AGE"]
            assert row.split()[:-1] == ["pin", '["pinned"]', "Serve", "True", "True", "True", "Serving"]
            assert kstatus(_read(kubectl)) == "Current"
            kubectl.apply(policy(PIN.replace("node.name", "nod.name")))
            kubectl.until("schedulingpolicy/pin", "condition=Stalled")
            assert kstatus(_read(kubectl)) == "Failed"
            (row,) = kubectl("get", "spol", "-o", "wide", "--no-headers").splitlines()
            assert row.split()[3:7] == ["False", "Unknown", "True", "Invalid"] and "line 3, column 28: " in row
            kubectl("wait", "--for=create", "events", "--all", "--timeout=60s")
            described = kubectl("describe", "spol", "pin")
            assert re.search(r"Warning +PolicyRejected .* \(line 3, column 28\)", described), described
            user = Kubectl(admin, "default")
            user.apply(pod("one", scheduler_name="pinned"))
            user.until("pod/one", "jsonpath={.status.phase}=Running")
            assert user.node_of("one") == "node-2"
            kubectl.apply(policy(PIN + "// better\n"))
            kubectl.until("schedulingpolicy/pin", "condition=Ready")
            assert "Stalled" not in {row["type"] for row in _read(kubectl)["status"]["conditions"]}


def _read(kubectl: Kubectl) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl("get", "spol", "pin", "-o", "json"))
    return found
