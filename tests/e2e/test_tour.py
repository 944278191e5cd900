"""The tour of README and docs/explain.md, typed on a sandbox of either kind: what is shown there is what is seen."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.commands.process import ROOT
from tests.e2e.cluster import process

README = (ROOT / "README.md").read_text(encoding="utf-8")
EXPLAIN = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
HUGE = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}]}
Shell = Callable[[str], str]


@pytest.fixture(scope="module", params=["embedded", "envtest"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Types a command where the README has its reader stand, in the second terminal; gives what it printed."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    if request.param == "envtest" and not os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("$KUBEBUILDER_ASSETS names no real API server")
    folder = tmp_path_factory.mktemp("tour")
    for name in ("examples", "policies"):
        (folder / name).symlink_to(ROOT / name)
    for name, module in (("policyengine", "main"), ("kubectl-policyengine", "kubectl")):
        script = f"#!{sys.executable}\nfrom policyengine.commands.{module} import main\nmain()\n"
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    env = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    env["KUBECONFIG"] = str(folder / "sandbox.kubeconfig")
    sandbox = ["sandbox", "--nodes", "3", "--policy", "policies/riya.policy", "--apiserver", request.param]
    assert " ".join(sandbox[:5]) in README

    def typed(command: str) -> str:
        done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    arguments = ("-m", "policyengine.commands.main", *sandbox, "--kubeconfig-out", env["KUBECONFIG"])
    with process(*arguments, until="Ctrl-C ends it"):
        yield typed


def commands(text: str, title: str) -> list[str]:
    """Those that end by themselves, of the blocks under a title, without what is said of them."""
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
    found = [" ".join(shlex.split(line, comments=True)) and line.partition("  #")[0].strip() for line in lines]
    return [
        line for line in found if re.match("kubectl|policyengine", line) and not re.search(r"sandbox|edit|-w$", line)
    ]


def until(shell: Shell, command: str, told: str) -> str:
    for _ in range(100):
        if told in (said := shell(command)):
            return said
        time.sleep(0.2)
    raise AssertionError(said)


def test_the_readmes_tour(shell: Shell) -> None:
    tour = commands(README, "Five minutes with kubectl")
    assert len(tour) >= 9
    for command in tour:
        said = shell(command)
        if "too-few" in command:
            until(shell, "kubectl describe pod crew-2", "FailedScheduling")
        elif "explain crew-2" in command:
            assert said.startswith("default/crew-2  held; policy riya ")
            assert "\n  gang pod-group: 2 of 3 members exist\n" in said
        elif "enough" in command:
            until(shell, "kubectl get pods crew-2 -o jsonpath='{.spec.nodeName}'", "node-")
        elif "label configmap" in command:
            until(shell, "kubectl -n kube-system get configmap riya -o yaml", '"state": "accepted"')
    assert "ConfigMap kube-system/riya" in shell("kubectl policyengine status")


def shown(title: str) -> list[tuple[str, str]]:
    """(command, what is printed then) of the console blocks under a title of docs/explain.md."""
    section = EXPLAIN.partition(f"## {title}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    parts = [part.partition("\n") for block in blocks for part in block.split("$ ")[1:]]
    return [(command, text.strip()) for command, _, text in parts]


def pattern(text: str) -> str:
    """What is seen: other times, hashes and nodes, and anything for `…`."""
    made = re.escape(" ".join(text.split()))
    made = re.sub(r"\d{4}\\-[\d\\-]+T[\d:\\.]+Z", r"\\S+", made)
    made = re.sub(r"\\\+\d+\\\.\d+s", r"\\S+", made)
    made = re.sub(r"\b[0-9a-f]{12}\b", "[0-9a-f]{12}", made)
    return re.sub(r"(\\ )?…", ".*?", re.sub(r"node\\-\d", r"node-\\d", made))


def test_what_docs_explain_shows_of_the_running_scheduler(shell: Shell) -> None:
    shell("kubectl delete pods --all --wait=true; kubectl -n kube-system delete configmap riya --ignore-not-found")
    shell("kubectl apply -f examples/riya/1-pre-filter/too-few.yaml")
    shell(f"kubectl run huge --image=i --overrides={shlex.quote(json.dumps({'spec': HUGE}))}")
    until(shell, "policyengine explain huge", "Insufficient cpu")
    until(shell, "policyengine explain crew-1", "2 of 3 members exist")
    examples = shown("What the running scheduler says")
    assert len(examples) >= 2
    for command, text in examples:
        said = " ".join(shell(command).split())
        assert re.fullmatch(pattern(text), said), f"{command}\n{said}\n{pattern(text)}"
