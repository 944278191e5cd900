"""The certificate that the webhook makes itself: shared, renewed in time, and trusted before it is shown."""

import asyncio
import json
import os
import shutil
import ssl
import subprocess
from base64 import b64decode, b64encode
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509

from policyengine.clock import SystemClock
from policyengine.kube.http.client import Client
from policyengine.server.listening import listening
from policyengine.server.managed_certificate import (
    AUTHORITIES,
    CERTIFICATE,
    CONFIGURATIONS,
    LIFE,
    RENEW_BEFORE,
    CertificateStore,
    Issued,
    ManagedCertificate,
    is_due,
    issue,
    managed,
)
from policyengine.simulator.api_server.http_requests import json_response
from policyengine.simulator.api_server.memory import MemoryResponse
from policyengine.simulator.real_server import real_server
from policyengine.simulator.sandbox import kubeconfig, write_kubeconfig
from tests.deploy.manifests import DEPLOY, documents
from tests.e2e.cluster import process

HOST = "w.ns.svc"
NAMES = (HOST, f"{HOST}.cluster.local")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Clock(SystemClock):
    """A clock that is put forward; nobody waits long."""

    ahead = timedelta()

    def now(self) -> float:
        return super().now() + self.ahead.total_seconds()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.005)


def answer(status: int, body: object) -> MemoryResponse:
    return MemoryResponse(json_response(status, body))


class Server:
    """An API server with room for one Secret and one webhook configuration."""

    def __init__(self) -> None:
        self.secret: dict[str, Any] | None = None
        self.hooks = [{"name": name, "clientConfig": {}} for name in ("a.example", "b.example")]
        self.calls: list[str] = []
        self.fails = 0

    async def request(self, method: str, path: str, body: bytes | None = None, **_: object) -> MemoryResponse:
        await asyncio.sleep(0)  # two replicas take turns
        if method != "GET":
            self.calls.append(f"{method} {path.rpartition('/')[2]}")
        if self.fails:
            self.fails -= 1
            return answer(500, {"message": "not now"})
        given = json.loads(body or b"{}")
        if path.startswith(CONFIGURATIONS):
            for patch in given.get("webhooks", ()):
                (hook,) = (one for one in self.hooks if one["name"] == patch["name"])
                hook["clientConfig"] |= patch["clientConfig"]  # type: ignore[operator]
            return answer(200, {"webhooks": self.hooks})
        known = "" if self.secret is None else self.secret["metadata"]["resourceVersion"]
        if method == "GET":
            return answer(404, {}) if self.secret is None else answer(200, self.secret)
        if given["metadata"].get("resourceVersion", "") != known:
            return answer(409, {"message": "the object has been modified"})
        version = str(int(known or "0") + 1)
        self.secret = {**given, "metadata": {**given["metadata"], "resourceVersion": version}}
        return answer(201, self.secret)

    async def close(self) -> None:
        pass

    @property
    def trusted(self) -> str:
        """The authorities that every webhook of the configuration trusts, in PEM."""
        (bundle,) = {str(hook["clientConfig"]["caBundle"]) for hook in self.hooks}  # type: ignore[index]
        return b64decode(bundle).decode()


def store(server: Server, clock: Clock) -> CertificateStore:
    return CertificateStore(Client(server), clock, "ns", "tls", "w", "c")  # type: ignore[arg-type]


async def handshake(port: int, trusted: str, host: str = HOST) -> None:
    """What an API server does before it asks. Raises `ssl.SSLError` where it does not trust the certificate."""
    context = ssl.create_default_context(cadata=trusted)
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
    writer.close()


async def shown(certificate: ManagedCertificate, trusted: str) -> None:
    async with listening(web.Application(), "127.0.0.1:0", certificate, 4, 0.1) as port:
        await handshake(port, trusted)


async def test_what_is_made_is_trusted_by_the_configuration_and_by_nobody_else() -> None:
    server = Server()
    certificate = await managed(store(server, Clock()))
    assert server.calls == ["POST secrets", "PATCH c"]
    async with listening(web.Application(), "127.0.0.1:0", certificate, 4, 0.1) as port:
        await handshake(port, server.trusted)
        await handshake(port, server.trusted, NAMES[1])
        with pytest.raises(ssl.SSLError):
            await handshake(port, server.trusted, "other.ns.svc")
        with pytest.raises(ssl.SSLError):
            await handshake(port, issue(NAMES, datetime.now(UTC)).authorities.decode())


async def test_replicas_that_start_at_once_show_one_certificate() -> None:
    server, clock = Server(), Clock()
    found = await asyncio.gather(*(store(server, clock).current() for _ in range(5)))
    assert len(set(found)) == 1
    assert found[0].authorities.decode() == server.trusted


async def test_a_renewed_certificate_is_trusted_before_it_is_shown_and_the_old_one_as_long_as_one_shows_it() -> None:
    server, clock = Server(), Clock()
    clock.ahead = RENEW_BEFORE - LIFE - timedelta(minutes=1)
    first, second = [await managed(store(server, clock)) for _ in range(2)]
    old = first.expires
    clock.ahead = timedelta()
    async with listening(web.Application(), "127.0.0.1:0", first, 4, 0.1) as port, asyncio.timeout(10.0):
        while first.expires == old:
            await asyncio.sleep(0.01)
            await handshake(port, server.trusted)
        await handshake(port, server.trusted)
    assert second.expires == old
    await shown(second, server.trusted)
    assert len(x509.load_pem_x509_certificates(server.trusted.encode())) == 2


async def test_a_new_certificate_that_cannot_be_shown_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server, clock = Server(), Clock()
    clock.ahead = RENEW_BEFORE - LIFE - timedelta(minutes=1)
    certificate = await managed(store(server, clock))
    old, clock.ahead = certificate.expires, timedelta()
    replace, failures = certificate.replace, [OSError("no space left"), OSError("no space left")]

    def failing(*given: Any) -> None:
        if failures:
            raise failures.pop()
        replace(*given)

    monkeypatch.setattr(certificate, "replace", failing)
    async with listening(web.Application(), "127.0.0.1:0", certificate, 4, 0.1) as port, asyncio.timeout(10.0):
        while certificate.expires == old:
            await asyncio.sleep(0.01)
            await handshake(port, server.trusted)
        await handshake(port, server.trusted)
    assert not failures


async def test_what_fails_is_tried_again() -> None:
    server = Server()
    server.fails = 4
    await shown(await managed(store(server, Clock())), server.trusted)


async def test_a_configuration_that_somebody_else_overwrote_is_told_again() -> None:
    server, clock = Server(), Clock()
    known = store(server, clock)
    trusted = (await known.current()).authorities.decode()
    server.hooks[0]["clientConfig"] = {}
    await known.current()
    assert server.trusted == trusted


def test_a_certificate_is_due_when_a_third_of_its_life_is_left_or_it_is_for_others() -> None:
    issued = issue(NAMES, NOW)
    late = NOW + LIFE - RENEW_BEFORE
    assert not is_due(issued, NAMES, NOW) and not is_due(issued, NAMES, late)
    assert is_due(issued, NAMES, late + timedelta(seconds=1))
    assert is_due(issued, ("x.ns.svc",), NOW)


@pytest.mark.parametrize(
    "data", [{}, {CERTIFICATE: "!"}, {CERTIFICATE: "eA=="}, {AUTHORITIES: b64encode(b"x").decode()}]
)
async def test_a_secret_that_holds_something_else_is_replaced(data: dict[str, str]) -> None:
    server = Server()
    server.secret = {"metadata": {"resourceVersion": "7"}, "data": data}
    await shown(await managed(store(server, Clock())), server.trusted)


def test_parts_that_do_not_belong_together_make_a_certificate_due() -> None:
    one, other = issue(NAMES, NOW), issue(NAMES, NOW)
    assert is_due(Issued(one.certificate, b"-----BEGIN PRIVATE KEY-----", one.authorities), NAMES, NOW)
    assert is_due(Issued(one.certificate, other.key, one.authorities), NAMES, NOW)
    assert is_due(Issued(one.certificate, one.key, other.authorities), NAMES, NOW)


def test_a_certificate_of_the_future_is_due_but_clocks_may_differ_by_an_hour() -> None:
    issued = issue(NAMES, NOW)
    assert not is_due(issued, NAMES, NOW - timedelta(minutes=59))
    assert is_due(issued, NAMES, NOW - timedelta(minutes=61))


@pytest.mark.skipif("KUBEBUILDER_ASSETS" not in os.environ, reason="there is no kube-apiserver in $KUBEBUILDER_ASSETS")
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on the PATH")
async def test_two_replicas_on_a_real_api_server_show_what_it_trusts(tmp_path: Path) -> None:
    async with real_server() as (url, token):
        write_kubeconfig(tmp_path / "admin", kubeconfig(url, token))

        def kubectl(*arguments: str, given: str = "") -> str:
            command = ["kubectl", f"--kubeconfig={tmp_path / 'admin'}", *arguments]
            return subprocess.run(command, input=given, check=True, capture_output=True, text=True).stdout

        hooks = [one for one in documents(DEPLOY / "webhook/webhook.yaml") if one["kind"].startswith("Valid")]
        await asyncio.to_thread(kubectl, "create", "-f", "-", given=json.dumps(hooks[0]))
        command = ("-m", "policyengine.commands.main", "webhook", "--listen=127.0.0.1:0")
        where = ("--tls-secret=kube-system/policyengine-webhook", f"--kubeconfig={tmp_path / 'admin'}")
        with ExitStack() as stack:
            for _ in range(2):
                await asyncio.to_thread(stack.enter_context, process(*command, *where, until="reviewing policies"))
        read = ("get", "validatingwebhookconfiguration", "policyengine", "-o", "json")
        found = json.loads(await asyncio.to_thread(kubectl, *read))
        bundle = b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])
        secret = json.loads(
            await asyncio.to_thread(kubectl, "-n", "kube-system", "get", "secret", "policyengine-webhook", "-o", "json")
        )
        assert b64decode(secret["data"][AUTHORITIES]) == bundle
        (authority,) = x509.load_pem_x509_certificates(bundle)
        (served,) = x509.load_pem_x509_certificates(b64decode(secret["data"][CERTIFICATE]))
        served.verify_directly_issued_by(authority)
