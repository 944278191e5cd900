"""What `deploy/` installs, on a real API server: its account, rights and configuration, and the pod that it runs in."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from policyengine.simulator.sandbox import write_kubeconfig
from tests.commands.process import Ended, kubectl_policyengine
from tests.deploy.manifests import DEPLOY, documents
from tests.e2e.cluster import Kubectl, scheduler, served
from tests.waiting import asked_until

POD = "policyengine-7d9f"


def own_address() -> str:
    """An address of this machine's that is no loopback: the proxy goes to no other. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        found: str = probe.getsockname()[0]
        return found


@dataclass
class Installed:
    admin: Kubectl
    jane: Path
    """The kubeconfig of somebody without any right."""
    process: subprocess.Popen[str]

    def ask(self, *arguments: str) -> Ended:
        return kubectl_policyengine(*arguments, "--kubeconfig", self.jane)

    def until(self, told: str, *arguments: str) -> Ended:
        """Ask until that is told: what RBAC allows it takes a moment to know."""
        return asked_until(lambda ended: told in ended.out + ended.err, lambda: self.ask(*arguments))


@contextmanager
def installation(folder: Path, *arguments: str, nodes: int = 2) -> Iterator[Installed]:
    """The rights and the configuration of `deploy/base`, a scheduler with them and with these arguments."""
    address = own_address()
    [configuration] = documents(DEPLOY / "base" / "configuration.yaml")
    (folder / "config.yaml").write_text(configuration["data"]["config.yaml"])
    with served("envtest", folder, nodes) as kubeconfig, pytest.MonkeyPatch.context() as environment:
        admin = Kubectl(kubeconfig, "kube-system")
        container = {"name": "policyengine", "image": "policyengine"}
        spec = {"nodeName": "control-plane", "containers": [container]}
        admin.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": spec})
        status = json.dumps({"status": {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}})
        admin("patch", "pod", POD, "--subresource=status", "-p", status)
        admin("create", "serviceaccount", "jane")
        theirs: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        theirs["users"][0]["user"] = {"token": admin("create", "token", "jane").strip()}
        write_kubeconfig(folder / "jane.kubeconfig", theirs)
        environment.setenv("POD_NAME", POD)
        environment.setenv("POD_NAMESPACE", "kube-system")
        given = ("--config", str(folder / "config.yaml"), f"--listen={address}:0", *arguments)
        with scheduler(kubeconfig, *given) as process:
            yield Installed(admin, folder / "jane.kubeconfig", process)
