import json
import logging
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from policyengine.clock import SystemClock
from policyengine.kube.config import credentials
from policyengine.kube.config.access import AccessDenied, check_access
from policyengine.kube.config.kubeconfig import ConfigError, Pem
from policyengine.kube.http.client import Client
from policyengine.simulator.api_server.handler import ApiServer
from policyengine.simulator.api_server.http import serve
from tests.kube.config.kubeconfigs import one_context, write


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    yield


def complaint(path: Path | None, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        credentials.load(path, context)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_after_a_refusal_credentials_are_read_again_and_stay_as_they_were_where_they_cannot(
    tmp_path: Path,
) -> None:
    token = write(tmp_path, "one\n", "token")
    server = credentials.load(write(tmp_path, one_context(user={"tokenFile": str(token)})))
    for change in (lambda: token.write_text("two"), token.unlink):
        change()
        assert dict(await server.authorize(True)) == {"Authorization": "Bearer two"}


async def test_an_exec_plugin_gives_the_token(tmp_path: Path) -> None:
    answer = json.dumps(
        {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}
    )
    plugin = {"command": "echo", "args": [answer], "apiVersion": "client.authentication.k8s.io/v1"}
    server = credentials.load(write(tmp_path, one_context(user={"exec": plugin})))
    assert dict(await server.authorize(False)) == {"Authorization": "Bearer t"}


def test_an_exec_plugin_that_fails_is_named(tmp_path: Path) -> None:
    plugin = {"command": "false", "apiVersion": "client.authentication.k8s.io/v1"}
    assert "no credentials" in complaint(write(tmp_path, one_context(user={"exec": plugin})))


def test_the_variable_names_the_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(write(tmp_path, one_context("http://elsewhere:2"))))
    assert credentials.load().url == "http://elsewhere:2"


def test_without_any_kubeconfig_the_complaint_says_what_to_pass() -> None:
    assert "no kubeconfig" in complaint(None)
    assert "--kubeconfig" in complaint(None)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "does not exist" in complaint(tmp_path / "nowhere")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/at/all")
    assert "$KUBECONFIG" in complaint(None)


def test_no_current_context_lists_the_contexts_there_are(tmp_path: Path) -> None:
    content = one_context()
    del content["current-context"]
    said = complaint(write(tmp_path, content))
    assert "has no current context" in said
    assert "here" in said


def test_an_unknown_context_user_or_cluster_is_named(tmp_path: Path) -> None:
    assert "no context `there`; it has here" in complaint(write(tmp_path, one_context()), "there")
    content = one_context()
    content["users"] = []
    assert "names user `u`, which it does not describe" in complaint(write(tmp_path, content))
    content = one_context()
    content["clusters"] = []
    assert "names cluster `c`, which it does not describe" in complaint(write(tmp_path, content))


@pytest.mark.parametrize("text", ["", "just text", "[1, 2]", "{", "contexts: 3\ncurrent-context: a\n"])
def test_a_file_that_is_no_kubeconfig_gets_one_line(tmp_path: Path, text: str) -> None:
    assert "kubeconfig" in complaint(write(tmp_path, text))


def test_a_certificate_that_is_not_there_or_no_certificate_is_named(tmp_path: Path) -> None:
    missing = {"certificate-authority": str(tmp_path / "ca.crt")}
    assert "ca.crt" in complaint(write(tmp_path, one_context("https://h", cluster=missing)))
    nonsense = {"certificate-authority": str(write(tmp_path, "nonsense", "bad.crt"))}
    assert "bad.crt" in complaint(write(tmp_path, one_context("https://h", cluster=nonsense)))


async def test_a_token_is_in_no_log_line_and_in_no_complaint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    site = await serve(ApiServer(SystemClock(), tokens={}))
    server = credentials.load(write(tmp_path, one_context(site.url, {"token": "hushhush"})))
    client = Client(server.connect())
    try:
        with pytest.raises(AccessDenied) as caught:
            await check_access(client, server.url, server.source)
    finally:
        await client.close()
        await site.stop()
    assert "hushhush" not in caplog.text + str(caught.value)


def test_a_key_that_a_kubeconfig_holds_is_in_a_file_of_the_owners_alone_while_it_is_read() -> None:
    seen: list[Path] = []

    class Context:
        def load_cert_chain(self, certificate: str, key: str) -> None:
            assert Path(key).read_bytes() == b"key" and Path(key).parent.stat().st_mode & 0o777 == 0o700
            seen.append(Path(key))

    context: ssl.SSLContext = Context()  # type: ignore[assignment]  # what is asked of it here
    credentials.load_certificate(context, Pem(content=b"certificate"), Pem(content=b"key"))
    assert len(seen) == 1 and not seen[0].exists()
