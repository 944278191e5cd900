"""A plugin that waits is asked in a process of its own, and nobody waits but the pods that it is asked about."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from policyengine.commands.plugin_packages import GROUP
from tests.e2e.cluster import Kubectl, pod, process, scheduler, served
from tests.e2e.waiting_plugin import ASKED, GO_ON

LICENCE = "example.com/licence"
POLICY = 'policy "licences" { base none use Waiting }\n'
LONGEST = 60.0


def install(packages: Path) -> None:
    """The package, where Python finds it."""
    about = packages / "waiting-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: waiting\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\nWaiting = tests.e2e.waiting_plugin:WAITING\n")


def seen(file: Path) -> None:
    end = time.monotonic() + LONGEST
    while not file.exists():
        assert time.monotonic() < end, f"{file.name} never came"
        time.sleep(0.02)


@pytest.mark.parametrize("kind", ["embedded", "envtest"])
def test_other_pods_are_placed_while_a_plugin_waits_in_an_extender(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = tmp_path / "asked", tmp_path / "go-on"
    monkeypatch.setenv(ASKED, str(asked))
    monkeypatch.setenv(GO_ON, str(go_on))
    install(tmp_path / "packages")
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).resolve().parents[2]}:{tmp_path / 'packages'}")
    (tmp_path / "licences.policy").write_text(POLICY)
    with served(kind, tmp_path) as kubeconfig:
        serving = ("extender", f"--policy={tmp_path / 'licences.policy'}", f"--kubeconfig={kubeconfig}")
        command = ("-m", "policyengine.commands.main", *serving, "--listen=127.0.0.1:0")
        with process(*command, until="extender for") as extender:
            url = f"http://127.0.0.1:{listening_port(extender.pid)}/licences"
            given = {
                "urlPrefix": url,
                "filterVerb": "filter",
                "nodeCacheCapable": True,
                "httpTimeout": f"{LONGEST:g}s",
                "managedResources": [{"name": LICENCE, "ignoredByScheduler": True}],
            }
            head = "apiVersion: policyengine.io/v1\nkind: SchedulerConfiguration\n"
            (tmp_path / "config.yaml").write_text(f"{head}extenders: {json.dumps([given])}\n")
            (tmp_path / "plain.policy").write_text('policy "plain" { scheduler "policy-scheduler" }\n')
            own = (f"--config={tmp_path / 'config.yaml'}", f"--policy={tmp_path / 'plain.policy'}")
            with scheduler(kubeconfig, *own):
                cluster = Kubectl(kubeconfig, "default")
                licensed = pod("licensed")
                resources = licensed["spec"]["containers"][0]["resources"]
                resources["requests"][LICENCE] = "1"
                resources["limits"] = {LICENCE: "1"}
                cluster.apply(licensed)
                seen(asked)
                cluster.apply(pod("other"))
                cluster.until("pod/other", "jsonpath={.spec.nodeName}")
                assert not cluster.node_of("licensed")
                go_on.touch()
                cluster.until("pod/licensed", "jsonpath={.spec.nodeName}")


def listening_port(pid: int) -> int:
    """The port on which a process listens on loopback."""
    sockets = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
            return int(fields[1].rpartition(":")[2], 16)
    raise AssertionError(f"{pid} does not listen")
