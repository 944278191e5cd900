import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.commands.process import ROOT, policyengine


def test_a_port_in_use_exits_with_2_and_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = policyengine("sandbox", "--port", str(port), cwd=tmp_path)
    assert ended.code == 2
    assert f"port {port}" in ended.err
    assert "--port" in ended.err
    assert ended.err.count("\n") == 1


def test_a_kubeconfig_that_cannot_be_written_exits_with_2(tmp_path: Path) -> None:
    ended = policyengine("sandbox", "--kubeconfig-out", tmp_path / "no" / "config", cwd=tmp_path)
    assert ended.code == 2
    assert "cannot write" in ended.err


def test_envtest_without_its_binaries_exits_with_2(tmp_path: Path) -> None:
    ended = policyengine("sandbox", "--apiserver", "envtest", cwd=tmp_path, env={"KUBEBUILDER_ASSETS": ""})
    assert ended.code == 2
    assert "$KUBEBUILDER_ASSETS" in ended.err
    ended = policyengine("sandbox", "--apiserver", "envtest", cwd=tmp_path, env={"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert ended.code == 2
    assert "etcd" in ended.err


def test_a_sandbox_writes_a_kubeconfig_serves_its_nodes_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "policyengine.commands.main", "sandbox", "--nodes", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert any("Ctrl-C" in line for line in iter(child.stdout.readline, ""))
        config = tmp_path / "sandbox.kubeconfig"
        assert config.stat().st_mode & 0o077 == 0
        server = json.loads(config.read_text())["clusters"][0]["cluster"]["server"]
        assert server.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{server}/api/v1/nodes", timeout=10) as answer:
            names = [item["metadata"]["name"] for item in json.load(answer)["items"]]
        assert names == ["node-1", "node-2"]
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
        assert child.returncode == 0
        assert "Traceback" not in err
    finally:
        child.kill()


def test_the_demo_shows_who_ran_in_the_policys_order_and_who_waits() -> None:
    ended = policyengine("demo")
    assert ended.code == 0, ended.err
    rows = [line.split() for line in ended.out.splitlines()]
    order = [row[1].split("-")[0] for row in rows if row and row[0].isdecimal() and "-" in row[1]]
    assert order == ["green"] * 3 + ["red"] * 3 + ["yellow"] * 3
    assert "gang pod-group: 1 of 2 members exist" in ended.out
