"""What an operator can get wrong: each gives one clear message and its exit code, and never a traceback."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from policyengine.clock import SystemClock
from policyengine.kube.config.access import AccessDenied, Unreachable, check_access
from policyengine.kube.http.aiohttp_transport import AiohttpTransport
from policyengine.kube.http.client import Client
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http import serve
from policyengine.simulator.api_server.http_requests import User
from policyengine.simulator.real_server import connect
from tests.commands.process import policyengine


def kubeconfig(folder: Path, server: str, **changes: Any) -> Path:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
        **changes,
    }
    path = folder / "config"
    path.write_text(json.dumps(content))
    return path


def nobody_listens() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_an_unreachable_server_exits_with_3(tmp_path: Path) -> None:
    server = nobody_listens()
    ended = policyengine("run", "--kubeconfig", kubeconfig(tmp_path, server))
    assert ended.code == 3
    assert ended.err.startswith(f"error: cannot reach the API server `{server}`")
    assert ended.err.count("\n") == 1


def test_a_kubeconfig_without_a_current_context_exits_with_2(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", **{"current-context": ""})
    ended = policyengine("run", "--kubeconfig", path)
    assert ended.code == 2
    assert "has no current context" in ended.err
    assert ended.err.count("\n") == 1


POLICIES = {
    "syntax": (b'policy "p" {\n  filter "x" { require node.name == }\n}\n', ":2:"),
    "type": (b'policy "p" {\n  filter "x" { require node.name == 1 }\n}\n', ":2:"),
    "name": (b'policy "p" {\n  filter "x" { require nod.name == "a" }\n}\n', "`nod`"),
}


@pytest.mark.parametrize("kind", sorted(POLICIES))
def test_a_policy_that_cannot_be_loaded_exits_with_2_before_any_server_is_asked(tmp_path: Path, kind: str) -> None:
    text, expected = POLICIES[kind]
    path = tmp_path / f"{kind}.policy"
    path.write_bytes(text)
    ended = policyengine("run", "--kubeconfig", "/nowhere", "--policy", path)
    assert ended.code == 2
    assert expected in ended.err
    assert path.name in ended.err


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


async def denied(token: str, users: dict[str, User]) -> str:
    """What a server with RBAC says to a token."""
    site = await serve(ApiServer(SystemClock(), tokens=users))
    client = Client(connect(site.url, token))
    try:
        with pytest.raises(AccessDenied) as caught:
            await check_access(client, site.url, "kubeconfig `x`")
    finally:
        await client.close()
        await site.stop()
    return str(caught.value)


async def test_wrong_credentials_are_told_apart_from_missing_rights() -> None:
    users = {"good": User("somebody", ("system:authenticated",))}
    assert "refuses the credentials of kubeconfig `x`" in await denied("bad", users)
    assert "refuses to list nodes" in await denied("good", users)


async def test_something_that_is_no_api_server_is_said_to_be_none() -> None:
    from aiohttp import web

    async def hello(request: web.BaseRequest) -> web.Response:
        return web.Response(text="<html>hello</html>")

    runner = web.ServerRunner(web.Server(hello))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    client = Client(AiohttpTransport(f"http://127.0.0.1:{port}"))
    try:
        with pytest.raises(Unreachable, match="does not answer as an API server"):
            await check_access(client, f"http://127.0.0.1:{port}", "x")
    finally:
        await client.close()
        await runner.cleanup()
