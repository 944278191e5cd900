"""The webhook's certificate where nobody else makes one: a Secret that its replicas share and renew.

Rules:
1. Each certificate is signed by an authority of its own, whose key is thrown away with it: no Secret holds a key that
   could sign another one.
2. The Secret lists the authorities of this certificate and of the one before it, and the webhook's configuration
   trusts both. It is told before a new certificate is shown, so no replica is ever distrusted.
3. A certificate is renewed when a third of its life is left. Two replicas that renew at once: the Secret's version lets
   one of them win, and the other takes its certificate.
"""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from policyengine.clock import Clock
from policyengine.cluster.objects import format_time
from policyengine.kube.config.kubeconfig import Pem
from policyengine.kube.http.client import STRATEGIC_MERGE_PATCH, ApiError, Client, ConnectionFailed, object_of
from policyengine.server.certificate import CertificateUnusable, ServingCertificate

logger = logging.getLogger(__name__)

LIFE = timedelta(days=90)
RENEW_BEFORE = LIFE / 3
SKEW = timedelta(hours=1)
"""A certificate counts from so long before it is made: clocks differ."""
LOOK_AGAIN = 60.0
"""Seconds between looks at the Secret."""
RETRY = 5.0
"""Seconds after which a failed look is repeated."""
SPREADS = 10.0
"""Seconds that API servers are given to hear of a changed configuration."""
CERTIFICATE, KEY, AUTHORITIES = "tls.crt", "tls.key", "ca.crt"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@dataclass(frozen=True)
class Issued:
    """A certificate, its key, and who is to be trusted, each in PEM."""

    certificate: bytes
    key: bytes
    authorities: bytes


def issue(names: tuple[str, ...], now: datetime, earlier: bytes = b"") -> Issued:
    """A new certificate for these DNS names. `earlier`: authorities in PEM, the newest first, of which it keeps one;
    anything else where there is none."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    # An issuer is looked up by its name, so no two authorities have the same.
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"policyengine-{x509.random_serial_number():x}")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])

    def unsigned(subject: x509.Name, key: ec.EllipticCurvePublicKey, is_authority: bool) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), now - SKEW, now + LIFE)
        constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
        return builder.add_extension(constraints, critical=True)

    authority = unsigned(issuer, authority_key.public_key(), True).sign(authority_key, hashes.SHA256())
    signed = (
        unsigned(subject, key.public_key(), False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    try:
        before = [one.public_bytes(pem) for one in x509.load_pem_x509_certificates(earlier)[:1]]
    except ValueError:  # there is none, or it cannot be read
        before = []
    return Issued(
        signed.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        b"".join([authority.public_bytes(pem), *before]),
    )


def is_due(issued: Issued, names: tuple[str, ...], now: datetime) -> bool:
    """Whether a certificate is to be renewed: it is none, its parts do not belong together, it is for other names, is
    of a time to come, or ends soon."""
    try:
        (first, *_) = x509.load_pem_x509_certificates(issued.certificate)
        (authority, *_) = x509.load_pem_x509_certificates(issued.authorities)
        first.verify_directly_issued_by(authority)
        key = serialization.load_pem_private_key(issued.key, None)
        found = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature, x509.ExtensionNotFound):
        return True
    is_right = key.public_key() == first.public_key() and set(found.get_values_for_type(x509.DNSName)) == set(names)
    return not is_right or now < first.not_valid_before_utc or first.not_valid_after_utc - now < RENEW_BEFORE


class ManagedCertificate(ServingCertificate):
    """The certificate in a Secret, made and renewed here. Begin with `managed`."""

    def __init__(self, store: CertificateStore, issued: Issued, client_ca: Path | None = None) -> None:
        super().__init__(Pem(content=issued.certificate), Pem(content=issued.key), client_ca)
        self._store = store
        self._shown = issued
        self._believed = self.authorities()

    async def follow(self) -> None:
        """Look at the Secret every minute, until cancelled."""
        while True:
            await self._store.clock.sleep(LOOK_AGAIN)
            issued = await self._store.current()
            try:
                believed = self.authorities()
                if (issued, believed) == (self._shown, self._believed):
                    continue
                await self._store.clock.sleep(SPREADS)
                self.replace(Pem(content=issued.certificate), Pem(content=issued.key))
            except (CertificateUnusable, OSError) as error:  # OSError: no file for OpenSSL to read it from
                logger.error("the new certificate cannot be shown, the one before it goes on: %s", error)
                continue
            self._shown, self._believed = issued, believed
            logger.info("the certificate is a new one, valid until %s", format_time(self.expires))


class SelfSigned(ServingCertificate):
    """A certificate of this process' own, which nobody can check, as kube-scheduler makes one for its secure port: the
    API server's proxy takes the certificates of pods as they are, and tokens are not sent in the clear."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        super().__init__(*self._issued())

    async def follow(self) -> None:
        """Show a new one while a third of the life of the last is left, until cancelled."""
        while True:
            await self._clock.sleep((LIFE - RENEW_BEFORE).total_seconds())
            self.replace(*self._issued())

    def _issued(self) -> tuple[Pem, Pem]:
        issued = issue((self._name,), datetime.fromtimestamp(self._clock.now(), UTC))
        return Pem(content=issued.certificate), Pem(content=issued.key)


async def managed(store: CertificateStore, client_ca: Path | None = None) -> ManagedCertificate:
    """The certificate to begin with; waits until the API server has taken it. Raises `CertificateUnusable`."""
    return ManagedCertificate(store, await store.current(), client_ca)


class CertificateStore:
    """The Secret, and the configuration that trusts what it holds."""

    def __init__(self, client: Client, clock: Clock, namespace: str, secret: str, service: str, configuration: str):
        self.clock = clock
        self._client = client
        self._secrets = f"/api/v1/namespaces/{namespace}/secrets"
        self._secret = secret
        self._names = (f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")
        self._configuration = f"{CONFIGURATIONS}/{configuration}"

    async def current(self) -> Issued:
        """The certificate that all replicas show, and that the API server trusts; asks until it has one."""
        told = ""
        while True:
            try:
                issued = await self._stored()
                await self._trust(issued)
                return issued
            except (ApiError, ConnectionFailed) as error:
                if str(error) != told:
                    logger.error("the webhook's certificate cannot be kept new: %s", error)
                told = str(error)
            await self.clock.sleep(RETRY)

    async def _stored(self) -> Issued:
        """What the Secret holds, renewed if that is due. A conflict raises `ApiError`: somebody else renewed it."""
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        found = await self._read(f"{self._secrets}/{self._secret}")
        issued = _issued(found or {})
        if not is_due(issued, self._names, now):
            return issued
        issued = issue(self._names, now, issued.authorities)
        data = {CERTIFICATE: issued.certificate, KEY: issued.key, AUTHORITIES: issued.authorities}
        encoded = {name: b64encode(content).decode() for name, content in data.items()}
        if found is None:
            metadata: dict[str, Any] = {"name": self._secret}
            created = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls"}
            await self._client.call("POST", self._secrets, {**created, "data": encoded})
        else:
            changed = {**found, "data": {**(found.get("data") or {}), **encoded}}
            await self._client.call("PUT", f"{self._secrets}/{self._secret}", changed)
        logger.info("the Secret `%s` holds a new certificate for %s", self._secret, self._names[0])
        return issued

    async def _trust(self, issued: Issued) -> None:
        """Have the webhook's configuration trust the authorities."""
        found = await self._read(self._configuration)
        bundle = b64encode(issued.authorities).decode()
        hooks = [] if found is None else found.get("webhooks") or []
        if found is None:
            logger.warning("there is no `%s` yet", self._configuration.rpartition("/")[2])
        patched = [
            {"name": hook["name"], "clientConfig": {"caBundle": bundle}}
            for hook in hooks
            if hook["clientConfig"].get("caBundle") != bundle
        ]
        if patched:
            body = {"webhooks": patched}
            await self._client.call("PATCH", self._configuration, body, content=STRATEGIC_MERGE_PATCH)

    async def _read(self, path: str) -> dict[str, Any] | None:
        try:
            return object_of(await self._client.call("GET", path))
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise


def _issued(secret: Mapping[str, Any]) -> Issued:
    data = secret.get("data") or {}

    def content(name: str) -> bytes:
        try:
            return b64decode(str(data.get(name, "")))
        except ValueError:
            return b""

    return Issued(content(CERTIFICATE), content(KEY), content(AUTHORITIES))
