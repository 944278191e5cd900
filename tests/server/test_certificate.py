"""A port's certificate is taken over anew when its files change, and its end is told."""

import asyncio
import logging
import shutil
import ssl
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from prometheus_client.core import Metric

from policyengine.kube.config.credentials import trusting
from policyengine.server import certificate
from policyengine.server.certificate import CertificateFiles, CertificateUnusable, expiry
from policyengine.server.listening import listening
from policyengine.server.metrics import process_metrics
from policyengine.server.metrics.process_metrics import EXPIRATION, MetricsPage
from tests.simulator.api_server.keys import Keys


def problem(certificate: Path, key: Path | None) -> str:
    with pytest.raises(CertificateUnusable) as caught:
        CertificateFiles(certificate, key)
    return str(caught.value)


def test_no_old_protocol_is_spoken(tmp_path: Path) -> None:
    files = CertificateFiles(*Keys(tmp_path).sign("one", "/CN=127.0.0.1"))
    assert files.context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_files_that_cannot_be_used_are_told_apart(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    certificate, key = keys.sign("one", "/CN=127.0.0.1")
    _, other = keys.sign("other", "/CN=127.0.0.1")
    absent = tmp_path / "absent"
    assert problem(absent, key) == f"certificate `{absent}` cannot be used: no such file or directory"
    assert problem(certificate, absent) == f"key `{absent}` cannot be used: no such file or directory"
    assert "is a directory" in problem(tmp_path, key)
    assert problem(certificate, other).endswith(f"with key `{other}`: they do not belong together")
    assert problem(certificate, None).endswith("with a key in the same file: both must be PEM")


class Shown:
    """A page behind a certificate in files, and what its clients are shown."""

    def __init__(self, folder: Path) -> None:
        self.keys = Keys(folder)
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.put("one")
        self.files = CertificateFiles(self.certificate, self.key)
        self.application = web.Application()
        self.application.router.add_get("/", MetricsPage(self.files).page)

    def put(self, name: str) -> None:
        """Another certificate, and the key of it, in the files."""
        for made, file in zip(self.keys.sign(name, f"/CN={name}"), (self.certificate, self.key), strict=True):
            shutil.copy(made, file)

    async def name(self, port: int, called: str | None = None) -> str:
        """Whom the certificate of a new connection names; `called` is the server's name that the client gives."""
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(), server_hostname=called or "")
        try:
            shown = x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(True))
            return shown.subject.rfc4514_string()
        finally:
            writer.close()


async def test_new_connections_are_shown_what_the_files_hold_now_and_open_ones_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "LOOK_AGAIN", 0.02)
    shown = Shown(tmp_path)
    async with listening(shown.application, "127.0.0.1:0", shown.files, 8, 0.1) as port:
        assert await shown.name(port) == await shown.name(port, "a.example") == "CN=one"
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(), server_hostname="")
        shown.put("two")
        async with asyncio.timeout(10.0):
            while await shown.name(port) != "CN=two":
                pass
        assert await shown.name(port, "a.example") == "CN=two"
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200 OK" in await reader.readline()
        writer.close()


async def test_files_that_cannot_be_used_leave_the_certificate_and_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(certificate, "LOOK_AGAIN", 0.01)
    shown = Shown(tmp_path)
    shown.key.write_text("nothing")
    with caplog.at_level(logging.ERROR):
        async with listening(shown.application, "127.0.0.1:0", shown.files, 8, 0.1) as port:
            while not caplog.messages:  # noqa: ASYNC110  (nobody tells)
                await asyncio.sleep(0.01)
            for _ in range(10):
                assert await shown.name(port) == "CN=one"
    (line,) = caplog.messages
    assert "both must be PEM; the certificate before it is shown until 20" in line


def test_the_end_of_a_certificate_is_a_metric(tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    told = {one.name: one.samples[0].value for one in MetricsPage(shown.files).collect()}
    assert told[EXPIRATION] == expiry(shown.certificate.read_bytes())
    assert told["process_resident_memory_bytes"] > 0
    assert EXPIRATION not in {one.name for one in MetricsPage(None).collect()}


async def test_a_page_of_metrics_is_made_at_most_four_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    class Counted:
        def collect(self) -> list[Metric]:
            nonlocal made
            made += 1
            return []

    page = MetricsPage(None, Counted())
    now = 100.0
    monkeypatch.setattr(process_metrics, "monotonic", lambda: now)
    for _ in range(40):
        assert (await page.page(None)).status == 200  # type: ignore[arg-type]  # it asks nothing of the request
        now += 0.025
    assert made == 4
