"""TLS and client certificates over a real socket: CN is the user, O are the groups."""

import ssl
from pathlib import Path

import aiohttp
import pytest

from policyengine.clock import SystemClock
from policyengine.kube.config.credentials import trusting
from policyengine.simulator.api_server import ApiServer
from policyengine.simulator.api_server.access.authentication import (
    CertificateError,
    server_context,
    service_account,
    user_of,
)
from policyengine.simulator.api_server.http import serve
from tests.simulator.api_server.keys import Keys

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def client(certificate: tuple[Path, Path] | None) -> ssl.SSLContext:
    context = trusting()
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context


async def test_a_client_certificate_says_who_asks(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    server = keys.sign("server", "/CN=127.0.0.1")
    ann, root = keys.sign("ann", "/O=team-a/O=team-b/CN=ann"), keys.sign("root", "/O=system:masters/CN=root")
    api = ApiServer(SystemClock(), tokens={"t": service_account("kube-system", "policyengine")})
    site = await serve(api, tls=server_context(*server, client_ca=tmp_path / "ca.crt"))

    async def ask(certificate: tuple[Path, Path] | None, token: str = "") -> tuple[int, dict[str, object]]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=client(certificate))
        async with aiohttp.ClientSession(site.url, connector=connector, headers=headers) as session:
            async with session.get("/api/v1/pods") as listed:
                status = listed.status
            async with session.post(WHOAMI, json={}) as answer:
                body = await answer.json()
        return status, body.get("status", {}).get("userInfo", {}) if answer.status == 201 else {}

    try:
        assert site.url.startswith("https://")
        who = {"username": "ann", "groups": ["team-a", "team-b", "system:authenticated"]}
        assert await ask(ann) == (403, who)
        assert (await ask(root))[0] == 200
        assert (await ask(None, "t"))[1]["username"] == "system:serviceaccount:kube-system:policyengine"
        # A certificate comes before a token, as with the real one.
        assert (await ask(ann, "t"))[1]["username"] == "ann"
        assert (await ask(None))[0] == 403
        assert (await ask(None, "stolen"))[0] == 401
        other = tmp_path / "other"
        other.mkdir()
        with pytest.raises(aiohttp.ClientError):
            await ask(Keys(other).sign("eve", "/O=system:masters/CN=eve"))
    finally:
        await site.stop()


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"the certificate `.*absent.crt` with key"):
        server_context(tmp_path / "absent.crt", tmp_path / "absent.key")


@pytest.mark.parametrize("certificate", [None, {}, {"subject": ()}, {"subject": ((("organizationName", "o"),),)}])
def test_a_certificate_without_a_common_name_names_nobody(certificate: dict[str, object] | None) -> None:
    assert user_of(certificate) is None
