"""The tour of README and docs/explain.md, typed on a sandbox of either kind, and on a real API server with `deploy/`:
what is shown there is what is seen."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.process import ROOT
from tests.e2e.account import ADMIN
from tests.e2e.cluster import POLICIES, process
from tests.e2e.installed import installation
from tests.e2e.pages import pattern, typed_in
from tests.waiting import asked_until

README = (ROOT / "README.md").read_text(encoding="utf-8")
EXPLAIN = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")


class Shell:
    """Types a command where the README has its reader stand, in the second terminal; gives what it printed."""

    def __init__(self, folder: Path, kubeconfig: Path, is_installed: bool) -> None:
        self.folder, self.is_installed = folder, is_installed
        """`deploy/` reads policies in a namespace of their own, and leaves `default-scheduler` to kube-scheduler."""
        for name in ("examples", "policies"):
            (folder / name).symlink_to(ROOT / name)
        for name, module in (("policyengine", "main"), ("kubectl-policyengine", "kubectl")):
            script = f"#!{sys.executable}\nfrom policyengine.commands.{module} import main\nmain()\n"
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        self._env = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        self._env["KUBECONFIG"] = str(kubeconfig)
        self.policies = POLICIES if is_installed else "kube-system"

    def __call__(self, command: str) -> str:
        command = command.replace("-n kube-system", f"-n {self.policies}")
        given: Any = {"cwd": self.folder, "env": self._env, "capture_output": True, "text": True, "timeout": 90}
        done = subprocess.run(["sh", "-c", command], **given)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return str(done.stdout)

    def until(self, command: str, told: str) -> str:
        """What it printed once that is among it."""
        return asked_until(lambda said: told in said, lambda: self(command))


@pytest.fixture(scope="module", params=["embedded", "envtest", "installed"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    if request.param != "embedded" and not os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("$KUBEBUILDER_ASSETS names no real API server")
    folder, policy = tmp_path_factory.mktemp("tour"), "policies/riya.policy"
    if request.param == "installed":
        with installation(folder, f"--policy={policy}", nodes=3):
            yield Shell(folder, folder / ADMIN, True)
        return
    sandbox = ["sandbox", "--nodes", "3", "--policy", policy, "--apiserver", request.param]
    assert " ".join(sandbox[:5]) in README
    kubeconfig = folder / "sandbox.kubeconfig"
    arguments = ("-m", "policyengine.commands.main", *sandbox, "--kubeconfig-out", str(kubeconfig))
    with process(*arguments, until="Ctrl-C ends it"):
        yield Shell(folder, kubeconfig, False)


def commands(text: str, title: str) -> list[str]:
    """Those that end by themselves, of the blocks under a title, without what is said of them."""
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
    found = [" ".join(shlex.split(line, comments=True)) and line.partition("  #")[0].strip() for line in lines]
    return [
        line for line in found if re.match("kubectl|policyengine", line) and not re.search(r"sandbox|edit|-w$", line)
    ]


def test_the_readmes_tour(shell: Shell) -> None:
    tour = commands(README, "Five minutes with kubectl")
    assert len(tour) >= 9
    for command in tour:
        said = shell(command)
        if "too-few" in command:
            shell.until("kubectl describe pod crew-2", "FailedScheduling")
        elif "explain crew-2" in command:
            assert said.startswith("default/crew-2  held; policy riya ")
            assert "\n  gang pod-group: 2 of 3 members exist\n" in said
        elif "enough" in command:
            shell.until("kubectl get pods crew-2 -o jsonpath='{.spec.nodeName}'", "node-")
        elif "label configmap" in command:
            shell.until("kubectl -n kube-system get configmap riya -o yaml", '"state": "accepted"')
    assert f"ConfigMap {shell.policies}/riya" in shell("kubectl policyengine status")


def seen_there(text: str) -> str:
    """What matches it: other times, hashes and nodes too."""
    made = re.sub(r"\d{4}\\-[\d\\-]+T[\d:\\.]+Z", r"\\S+", pattern(text))
    made = re.sub(r"\\\+\d+\\\.\d+s", r"\\S+", made)
    made = re.sub(r"\d+\\\.\d\\ s", r"\\S+ s", made)
    made = re.sub(r"\b[0-9a-f]{12}\b", "[0-9a-f]{12}", made)
    return re.sub(r"node\\-\d", r"node-\\d", made)


def see(shell: Shell, title: str, least: int) -> None:
    """Type what stands under a title, and see what is shown there."""
    section = EXPLAIN.partition(f"## {title}\n")[2].partition("\n## ")[0]
    examples = [example for example in typed_in(section) if "--cluster" not in example.command]
    assert len(examples) >= least
    for command, text in examples:
        said, want = " ".join(shell(command).split()), seen_there(text)
        if shell.is_installed:
            want = want.replace("policy\\ default", "policy\\ riya")
        assert re.fullmatch(want, said), f"{command}\n{said}\n{want}"


def begin(shell: Shell) -> None:
    shell(
        "kubectl delete pods --all --wait=true; kubectl -n kube-system delete configmap riya tiers --ignore-not-found"
    )
    if shell.is_installed:  # what helps a pod is worked out from the policies among the objects
        serve(shell, "riya", "policies/riya.policy")
    shell("kubectl apply -f examples/riya/1-pre-filter/too-few.yaml")
    shell.until("policyengine explain crew-1", "2 of 3 members exist")


def serve(shell: Shell, name: str, path: str) -> None:
    shell(f"kubectl -n kube-system create configmap {name} --from-file={path}")
    shell(f"kubectl -n kube-system label configmap {name} policyengine.io/policy=true")
    shell.until(f"kubectl -n kube-system get configmap {name} -o yaml", '"state": "accepted"')


def run(shell: Shell, name: str, scheduler_name: str, cpu: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"spec": {"schedulerName": scheduler_name, "containers": [container]}}
    shell(f"kubectl run {name} --image=i --overrides={shlex.quote(json.dumps(spec))}")


def test_what_docs_explain_shows_of_the_running_scheduler(shell: Shell) -> None:
    begin(shell)
    run(shell, "huge", "policy-scheduler" if shell.is_installed else "default-scheduler", "64")
    shell.until("policyengine explain huge", "Insufficient cpu")
    see(shell, "What the running scheduler says", 2)


def test_what_it_shows_of_a_gang_by_a_policy_that_is_named(shell: Shell) -> None:
    begin(shell)
    see(shell, "What would become of it", 1)


def test_what_it_shows_of_a_pod_that_has_a_node(shell: Shell) -> None:
    begin(shell)
    [text] = re.findall(r"```policy\n(.*?)```", EXPLAIN.partition("## Why here\n")[2].partition("\n## ")[0], re.DOTALL)
    (shell.folder / "tiers.policy").write_text(text)
    shell("kubectl label node node-2 --overwrite cost=low")
    serve(shell, "tiers", "tiers.policy")
    run(shell, "web-1", "tiers-scheduler", "1")
    shell.until("policyengine explain web-1", "placed")
    see(shell, "Why here", 2)
