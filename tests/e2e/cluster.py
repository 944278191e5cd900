"""A cluster and a scheduler as processes, and the real kubectl to look at them.

The scheduler is the ServiceAccount of `deploy/base/rbac.yaml`, on the embedded server and on the real one: RBAC is on.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.account import ADMIN, BY_TOKEN, REFUSED

HERE = Path(__file__).resolve().parent
WAIT = "--timeout=60s"
POLICIES = "policyengine-policies"
"""The namespace that `deploy/` gives policies."""


class Kubectl:
    """The real kubectl against one kubeconfig."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace

    def __call__(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout + ("" if check else done.stderr)

    def apply(self, *items: dict[str, Any]) -> None:
        """All of one namespace."""
        namespace = items[0]["metadata"].get("namespace", self.namespace)
        self("apply", "-n", namespace, "-f", "-", stdin="\n".join(json.dumps(item) for item in items))

    def until(self, what: str, condition: str) -> None:
        self("wait", what, f"--for={condition}", WAIT)

    def node_of(self, pod: str) -> str:
        return self("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")


@contextmanager
def process(*arguments: str, until: str) -> Iterator[subprocess.Popen[str]]:
    """A child that is up once a line of its output has `until` in it; killed at the end if it still runs."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=HERE.parent.parent,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert child.stdout is not None
        said = []
        for line in child.stdout:
            said.append(line)
            if until in line:
                break
        else:
            pytest.fail(f"{arguments} ended: {''.join(said)}")
        yield child
    finally:
        child.terminate()
        try:
            child.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()


@contextmanager
def served(kind: str, folder: Path, nodes: int = 2, refused: Collection[str] = ()) -> Iterator[Path]:
    """A cluster without a scheduler; gives its administrator's kubeconfig. Fails if its scheduler lacked a right.

    `refused` is what it is to be refused, each as `VERB PATH`.
    """
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    if kind == "envtest" and not os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("$KUBEBUILDER_ASSETS names no real API server")
    with process("-m", "tests.e2e.serve_world", kind, str(folder), str(nodes), until="the world is up"):
        yield folder / ADMIN
    assert set((folder / REFUSED).read_text().splitlines()) == set(refused)


@contextmanager
def scheduler(kubeconfig: Path, *arguments: str, credentials: str = BY_TOKEN) -> Iterator[subprocess.Popen[str]]:
    """`policyengine run` on the cluster of an administrator's kubeconfig, as the scheduler's own account."""
    own = kubeconfig.with_name(credentials)
    run = ("-m", "policyengine.commands.main", "run", f"--kubeconfig={own}", f"--namespace={POLICIES}", *arguments)
    with process(*run, until="scheduling on") as child:
        yield child


def pod(name: str, cpu: str = "100m", scheduler_name: str = "policy-scheduler", **labels: str) -> dict[str, Any]:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"schedulerName": scheduler_name, "containers": [container]},
    }


def policy_map(name: str, text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": POLICIES, "labels": {"policyengine.io/policy": "true"}},
        "data": {"main.policy": text},
    }
