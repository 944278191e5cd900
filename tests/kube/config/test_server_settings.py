"""A kubeconfig read by us is what the `kubernetes` package makes of it, wherever nothing has to be worked out."""

import base64
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyengine.clock import SystemClock
from policyengine.kube.config import credentials, kubeconfig
from policyengine.kube.config.kubeconfig import Chosen, ConfigError, Pem, Settings, choose
from policyengine.simulator.api_server import ApiServer
from policyengine.simulator.api_server.access.authentication import server_context
from policyengine.simulator.api_server.http import serve
from tests.kube.config.kubeconfigs import one_context, write
from tests.simulator.api_server.keys import Keys

FILES = {"ca.crt": b"authority\n", "me.crt": b"mine\n", "me.key": b"key\n", "token": b"from-a-file\n"}
NAMES = st.sampled_from(["a", "b", "c"])
WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name.replace("_", "-"): value for name, value in fields.items()})


def encoded(content: bytes) -> st.SearchStrategy[str]:
    return st.just(base64.b64encode(content).decode())


CLUSTERS = st.builds(
    lambda server, more: {"server": server, **more},
    st.sampled_from(["https://h:6443", "https://h/prefix/", "http://127.0.0.1:8001"]),
    maybe(
        certificate_authority=st.just("ca.crt"),
        certificate_authority_data=encoded(b"data"),
        insecure_skip_tls_verify=st.booleans(),
        tls_server_name=WORDS,
        proxy_url=st.just("http://proxy:3128"),
        extensions=st.just([]),
    ),
)
TOKENS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}), WORDS.map(lambda token: {"token": token}), st.just({"tokenFile": "token"}), st.just({"token": 12})
)
USERS = st.builds(
    lambda token, more: {**token, **more},
    TOKENS,
    maybe(
        client_certificate=st.just("me.crt"),
        client_certificate_data=encoded(b"crt"),
        client_key=st.just("me.key"),
        client_key_data=encoded(b"key"),
    ),
)


@st.composite
def kubeconfigs(draw: st.DrawFn) -> dict[str, Any]:
    def entries(kind: str, values: st.SearchStrategy[Any]) -> list[dict[str, Any]]:
        return [{"name": name, kind: draw(values)} for name in "abc"]

    return {
        "clusters": entries("cluster", CLUSTERS),
        "users": entries("user", USERS),
        "contexts": entries("context", st.builds(lambda c, u: {"cluster": c, "user": u}, NAMES, NAMES)),
        "current-context": draw(NAMES),
    }


def content(pem: Pem | None) -> bytes | None:
    if pem is None:
        return None
    return pem.content or Path(pem.path).read_bytes()


def seen(found: Settings) -> dict[str, object]:
    """Settings without the question whether a certificate lies in a file."""
    return {
        "url": found.url,
        "authorization": found.authorization(),
        "authority": content(found.authority),
        "certificate": content(found.certificate),
        "key": content(found.key),
        "verify": found.verify,
        "server_hostname": found.server_hostname,
        "proxy": found.proxy,
    }


@settings(max_examples=40)
@given(kubeconfigs(), NAMES)
def test_what_is_written_down_is_read_as_the_package_reads_it(content: dict[str, Any], context: str) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for proxy in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            patch.delenv(proxy, raising=False)
            patch.delenv(proxy.upper(), raising=False)
        for file, held in FILES.items():
            Path(name, file).write_bytes(held)
        path = Path(name, "config")
        path.write_text(json.dumps(content))
        chosen = choose([str(path)], context)
        assert kubeconfig.is_written_down(chosen)
        assert seen(kubeconfig.written(chosen)) == seen(kubeconfig.by_package([str(path)], chosen))


def chosen(*paths: Path) -> Chosen:
    return choose([str(path) for path in paths])


@pytest.mark.parametrize("user", [{"exec": {"command": "x"}}, {"auth-provider": {"name": "oidc"}}, {"username": "u"}])
def test_what_has_to_be_worked_out_is_left_to_the_package(tmp_path: Path, user: dict[str, Any]) -> None:
    assert not kubeconfig.is_written_down(chosen(write(tmp_path, one_context(user=user))))


def test_the_environment_names_the_proxy_by_the_servers_scheme_unless_no_proxy_names_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = write(tmp_path / "plain", one_context("http://1.2.3.4:8080", {"token": "t"}))
    secure = write(tmp_path / "secure", one_context("https://1.2.3.4:6443", {"token": "t"}))
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    assert [credentials.load(path).proxy for path in (plain, secure)] == ["http://proxy:3128", None]
    monkeypatch.setenv("HTTPS_PROXY", "http://other:3128")
    assert credentials.load(secure).proxy == "http://other:3128"
    monkeypatch.setenv("NO_PROXY", "1.2.3.4")
    assert [credentials.load(path).proxy for path in (plain, secure)] == [None, None]


def test_the_first_file_to_name_something_has_the_last_word(tmp_path: Path) -> None:
    first = write(tmp_path / "1", {"current-context": "here", "users": [{"name": "u", "user": {"token": "1"}}]})
    second = write(tmp_path / "2", {**one_context(user={"token": "2"}), "current-context": "y"})
    assert kubeconfig.written(chosen(first, second)).authorization() == "Bearer 1"


def test_a_users_file_is_looked_for_beside_the_file_that_names_it(tmp_path: Path) -> None:
    users = {"users": [{"name": "u", "user": {"tokenFile": "token"}}]}
    paths = [write(tmp_path / "1", users), write(tmp_path / "2", one_context())]
    (tmp_path / "1" / "token").write_text("beside the first")
    assert kubeconfig.written(chosen(*paths)).authorization() == "Bearer beside the first"


def test_a_token_file_goes_before_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of the file")
    both = one_context(user={"token": "of the section", "tokenFile": "token"})
    assert kubeconfig.written(chosen(write(tmp_path, both))).authorization() == "Bearer of the file"


def test_a_token_file_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    found = kubeconfig.written(chosen(write(tmp_path, one_context(user={"tokenFile": "token"}))))
    (tmp_path / "token").write_text("two\n")
    assert found.authorization() == "Bearer two"
    (tmp_path / "token").write_text("")
    with pytest.raises(ConfigError, match="is empty"):
        found.authorization()


def test_what_is_not_base64_is_named(tmp_path: Path) -> None:
    cluster = {"server": "https://h", "certificate-authority-data": "abcde"}
    with pytest.raises(ConfigError, match="certificate-authority-data"):
        kubeconfig.written(chosen(write(tmp_path, one_context(cluster=cluster))))


@pytest.mark.parametrize("held", [b"\xff\xfe", b"nonsense", b" "])
def test_an_authority_that_is_none_is_not_replaced_by_those_of_the_system(tmp_path: Path, held: bytes) -> None:
    cluster = {"server": "https://h", "certificate-authority-data": base64.b64encode(held).decode()}
    path = write(tmp_path, one_context(cluster=cluster))
    with pytest.raises(ConfigError, match="certificate authority `certificate-authority-data` cannot be used"):
        credentials.load(path)


@pytest.fixture
def service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("of the pod\n")
    (tmp_path / "ca.crt").write_text("authority")
    return tmp_path


@pytest.mark.parametrize(("host", "url"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")])
def test_a_pod_is_told_by_its_service_account(
    service_account: Path, monkeypatch: pytest.MonkeyPatch, host: str, url: str
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    found = kubeconfig.of_service_account(service_account)
    assert (found.url, found.authorization()) == (url, "Bearer of the pod")
    assert content(found.authority) == b"authority"


def test_a_pod_without_a_service_account_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "h")
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT", raising=False)
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_PORT is not set"):
        kubeconfig.of_service_account(tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigError, match=r"ca\.crt` does not exist"):
        kubeconfig.of_service_account(tmp_path)


@pytest.mark.parametrize("as_data", [False, True])
async def test_certificates_say_who_asks_whether_named_or_held(tmp_path: Path, as_data: bool) -> None:
    keys = Keys(tmp_path)
    certificate, key = keys.sign("ann", "/O=system:masters/CN=ann")
    site = await serve(
        ApiServer(SystemClock()), tls=server_context(*keys.sign("localhost", "/CN=localhost"), tmp_path / "ca.crt")
    )
    files = {"certificate-authority": tmp_path / "ca.crt", "client-certificate": certificate, "client-key": key}
    held: dict[str, Any] = {name: path.name for name, path in files.items()}
    if as_data:
        held = {f"{name}-data": base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    user = {name: value for name, value in held.items() if name.startswith("client")}
    # The name is checked against the certificate's subjectAltName, which this one does not have.
    cluster = {"server": site.url, "insecure-skip-tls-verify": True, **{k: v for k, v in held.items() if k not in user}}
    path = write(tmp_path, one_context(user=user, cluster=cluster))
    transport = credentials.load(path).connect()
    try:
        answer = await transport.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=b"{}")
        assert json.loads(await answer.read())["status"]["userInfo"]["username"] == "ann"
    finally:
        await transport.close()
        await site.stop()
