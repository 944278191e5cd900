"""The certificate that a port of ours shows. A new one is taken over without a restart.

Rules:
1. Each handshake takes the newest certificate whole: one certificate never meets the key of another.
   So it does the authorities of clients, where a certificate is asked of them; no session is resumed then, so that one
   that an authority signed which is no longer believed is refused from the next connection on.
2. Files that cannot be used leave the certificate as it is; a log line says so once.
3. The answer to when it runs out is a metric, so that somebody is told in time.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

from cryptography import x509

from policyengine import regular_file
from policyengine.cluster.objects import format_time
from policyengine.kube.config.credentials import LARGEST_PEM, load_certificate
from policyengine.kube.config.kubeconfig import Pem

logger = logging.getLogger(__name__)

LOOK_AGAIN = 10.0
"""Seconds between looks at the files. The kubelet takes about a minute to write a changed Secret."""


class CertificateUnusable(Exception):
    """A certificate, or its key, that no server can show; one sentence that names the file."""


class ServingCertificate:
    """A certificate with its key. `context` is what a server listens with, for as long as it runs."""

    def __init__(self, certificate: Pem, key: Pem | None, client_ca: Path | None = None) -> None:
        """Take the first certificate; without `key` the key is beside it. `client_ca`: a file with the authorities
        whose certificates clients may show. Raises `OSError` (also `ssl.SSLError`), `ValueError` and
        `CertificateUnusable`."""
        self._client_ca = client_ca
        self.context = _context()
        self.context.sni_callback = self._choose  # called in every handshake, whether the client names a server or not
        if client_ca is not None:
            _ask_clients(self.context)
        self.replace(certificate, key)

    @property
    def asks_clients(self) -> bool:
        """Whether clients are asked for a certificate."""
        return self._client_ca is not None

    def replace(self, certificate: Pem, key: Pem | None) -> None:
        """Show another one from now on, and read the authorities anew. Raises like the constructor, and then nothing
        has changed."""
        newest = _context()
        load_certificate(newest, certificate, key)
        if self._client_ca is not None:
            _ask_clients(newest)
            try:
                newest.load_verify_locations(cadata=self.authorities().decode("ascii", "ignore"))
            except (OSError, ValueError) as error:  # also ssl.SSLError
                raise CertificateUnusable(f"client authorities `{self._client_ca}` cannot be used: not PEM") from error
        self.expires = expiry(certificate.content or regular_file.read(certificate.path, LARGEST_PEM))
        """Seconds since the epoch."""
        self._newest = newest

    def authorities(self) -> bytes:
        """What the file with the clients' authorities holds now. Raises `CertificateUnusable`."""
        return b"" if self._client_ca is None else _bytes("client authorities", self._client_ca)

    async def follow(self) -> None:
        """Keep the certificate new, until cancelled."""

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, first: ssl.SSLContext) -> None:
        connection.context = self._newest


class CertificateFiles(ServingCertificate):
    """A certificate and its key in files that somebody else keeps new, such as a mounted Secret."""

    def __init__(self, certificate: Path, key: Path | None, client_ca: Path | None = None) -> None:
        """Without `key` the key is in the same file. Raises `CertificateUnusable`."""
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._seen = self._read()
        try:
            super().__init__(*self._files(), client_ca)
        except (OSError, ValueError) as error:  # also ssl.SSLError
            raise self._unusable(error) from None

    async def follow(self) -> None:
        """Look at the files every ten seconds, until cancelled."""
        told = ""
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            try:
                self.look()
                told = ""
            except CertificateUnusable as error:
                if str(error) != told:
                    logger.error("%s; the certificate before it is shown until %s", error, format_time(self.expires))
                told = str(error)

    def look(self) -> None:
        """Take over what the files hold, if that is something else. Raises `CertificateUnusable`."""
        found = self._read()
        if found == self._seen:
            return
        try:
            self.replace(*self._files())
        except (OSError, ValueError) as error:
            raise self._unusable(error) from None
        self._seen = found
        logger.info(
            "certificate `%s` was read anew; it is valid until %s", self._certificate, format_time(self.expires)
        )

    def _files(self) -> tuple[Pem, Pem | None]:
        return Pem(str(self._certificate)), None if self._key is None else Pem(str(self._key))

    def _read(self) -> tuple[bytes, bytes, bytes]:
        certificate = _bytes("certificate", self._certificate)
        return certificate, b"" if self._key is None else _bytes("key", self._key), self.authorities()

    def _unusable(self, error: Exception) -> CertificateUnusable:
        where = f"key `{self._key}`" if self._key is not None else "a key in the same file"
        mismatch = getattr(error, "reason", "") == "KEY_VALUES_MISMATCH"
        known = "they do not belong together" if mismatch else "both must be PEM"
        return CertificateUnusable(f"certificate `{self._certificate}` cannot be used with {where}: {known}")


def expiry(certificate: bytes) -> float:
    """When the first certificate of a PEM file runs out, in seconds since the epoch. Raises `ValueError`."""
    return x509.load_pem_x509_certificates(certificate)[0].not_valid_after_utc.timestamp()


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _ask_clients(context: ssl.SSLContext) -> None:
    """Let clients show a certificate: who shows none may still ask about health. A session cannot be resumed: TLS 1.3
    has no other way to than tickets, and there are none."""
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as before Python 3.13: kubeadm's authority has no such extensions
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0


def _bytes(what: str, path: Path) -> bytes:
    try:
        return regular_file.read(path, LARGEST_PEM)
    except OSError as error:
        raise CertificateUnusable(f"{what} `{path}` cannot be used: {regular_file.reason(error)}") from None
