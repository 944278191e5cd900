"""What an operator can get wrong: each gives one clear message and its exit code, and never a traceback."""

import json
import socket
from pathlib import Path

from policyengine.simulator.sandbox import kubeconfig
from tests.commands.process import policyengine
from tests.e2e.cluster import process


def nobody_listens() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_an_unreachable_server_exits_with_3(tmp_path: Path) -> None:
    server = nobody_listens()
    (tmp_path / "config").write_text(json.dumps(kubeconfig(server)))
    ended = policyengine("run", "--kubeconfig", tmp_path / "config")
    assert ended.code == 3
    assert ended.err.startswith(f"error: cannot reach the API server `{server}`")
    assert ended.err.count("\n") == 1


def test_an_address_that_is_taken_exits_with_2(tmp_path: Path) -> None:
    config = tmp_path / "config"
    cluster = process("-m", "tests.commands.empty_cluster", str(config), until="up")
    with cluster, socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = policyengine("run", "--kubeconfig", config, "--no-leader-elect", "--listen", address)
    assert ended.code == 2
    assert f"error: cannot listen on `{address}`: address already in use; choose another" in ended.err


def test_a_kubeconfig_without_a_current_context_exits_with_2(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(json.dumps({**kubeconfig("http://127.0.0.1:1"), "current-context": ""}))
    ended = policyengine("run", "--kubeconfig", tmp_path / "config")
    assert ended.code == 2
    assert "has no current context" in ended.err
    assert ended.err.count("\n") == 1


def test_a_policy_that_cannot_be_loaded_exits_with_2_before_any_server_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.policy").write_text('policy "p" {\n  filter "x" { require node.name == }\n}\n')
    ended = policyengine("run", "--kubeconfig", "/nowhere", "--policy", tmp_path / "a.policy")
    assert ended.code == 2
    assert "a.policy:2:" in ended.err


def test_a_policy_that_is_not_there_exits_with_2(tmp_path: Path) -> None:
    ended = policyengine("run", "--policy", tmp_path / "none.policy")
    assert ended.code == 2
    assert "none.policy` does not exist" in ended.err


def test_two_policies_for_one_scheduler_name_exit_with_2(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.policy").write_text(f'policy "{name}" {{ scheduler "s" }}\n')
    ended = policyengine("run", "--policy", tmp_path)
    assert ended.code == 2
    assert "scheduler `s` is served by two policies: `a` and `b`" in ended.err
