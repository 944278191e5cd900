import json
import os
import signal
import socket
import urllib.request
from pathlib import Path

import pytest

from policyengine.cluster.kinds import SCHEDULING_POLICIES
from policyengine.simulator.sandbox import SandboxError, kubeconfig, write_kubeconfig
from tests.commands.process import policyengine, running


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


@pytest.mark.parametrize("content", ["apiVersion: v1\nkind: Config\n", '{"clusters": []}', "", "\\xff"])
def test_a_file_that_no_sandbox_wrote_stays_as_it_is(tmp_path: Path, content: str) -> None:
    config = tmp_path / "config"
    config.write_text(content)
    ended = policyengine("sandbox", "--kubeconfig-out", config, cwd=tmp_path)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert f"`{config}` is there and was not written by a sandbox" in ended.err
    assert config.read_text() == content


def test_what_is_no_plain_file_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    write_kubeconfig(tmp_path / "other", kubeconfig("http://127.0.0.1:1"))
    (tmp_path / "link").symlink_to("other")
    for name in ("fifo", "link"):
        with pytest.raises(SandboxError):
            write_kubeconfig(tmp_path / name, kubeconfig("http://127.0.0.1:2"))


def test_the_kubeconfig_of_an_earlier_sandbox_is_replaced_by_one_for_its_owner_alone(tmp_path: Path) -> None:
    config = tmp_path / "config"
    write_kubeconfig(config, kubeconfig("http://127.0.0.1:1"))
    config.chmod(0o666)
    write_kubeconfig(config, kubeconfig("http://127.0.0.1:2"))
    assert config.stat().st_mode & 0o777 == 0o600
    assert json.loads(config.read_text())["clusters"][0]["cluster"]["server"] == "http://127.0.0.1:2"


def test_envtest_without_its_binaries_exits_with_2(tmp_path: Path) -> None:
    ended = policyengine("sandbox", "--apiserver", "envtest", cwd=tmp_path, env={"KUBEBUILDER_ASSETS": ""})
    assert ended.code == 2
    assert "$KUBEBUILDER_ASSETS" in ended.err
    ended = policyengine("sandbox", "--apiserver", "envtest", cwd=tmp_path, env={"KUBEBUILDER_ASSETS": str(tmp_path)})
    assert ended.code == 2
    assert "etcd" in ended.err


def test_what_it_is_to_begin_with_is_told_where_it_is_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text("kind: Pod\nmetadata: {name: p}\n")
    for given, told in (
        (("--nodes", "5001"), "5001 is not in the range 0<=x<=5000"),
        (("--nodes", "-1"), "-1 is not in the range"),
        (("--nodes", "nothing.yaml"), "cannot read `nothing.yaml`"),
        (("--nodes", "pods.yaml"), "`pods.yaml`: a `Pod` is no Node"),
        (("--cluster", "nothing.json"), "cannot read `nothing.json`"),
    ):
        ended = policyengine("sandbox", *given, cwd=tmp_path)
        assert ended.code == 2 and told in ended.err, ended.err


def test_a_sandbox_writes_a_kubeconfig_serves_its_nodes_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    with running("sandbox", "--nodes", "2", cwd=tmp_path) as child:
        assert child.stdout is not None
        assert any("Ctrl-C" in line for line in iter(child.stdout.readline, ""))
        config = tmp_path / "sandbox.kubeconfig"
        assert config.stat().st_mode & 0o077 == 0
        server = json.loads(config.read_text())["clusters"][0]["cluster"]["server"]
        assert server.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{server}/api/v1/nodes", timeout=10) as answer:
            names = [item["metadata"]["name"] for item in json.load(answer)["items"]]
        assert names == ["node-1", "node-2"]
        with urllib.request.urlopen(f"{server}{SCHEDULING_POLICIES.path()}", timeout=10) as answer:
            assert json.load(answer)["items"] == []
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
        assert child.returncode == 0
        assert "Traceback" not in err


def test_the_demo_shows_who_ran_in_the_policys_order_and_who_waits() -> None:
    ended = policyengine("demo")
    assert ended.code == 0, ended.err
    rows = [line.split() for line in ended.out.splitlines()]
    order = [row[1].split("-")[0] for row in rows if row and row[0].isdecimal() and "-" in row[1]]
    assert order == ["green"] * 3 + ["red"] * 3 + ["yellow"] * 3
    assert "gang pod-group: 1 of 2 members exist" in ended.out
