"""TLS: the server's certificate, and the client certificates it takes as identity (CN the user, O the groups)."""

import ssl
from collections.abc import Mapping
from pathlib import Path

from policyengine.simulator.api_server.access.authentication import AUTHENTICATED
from policyengine.simulator.api_server.requests import User


class CertificateError(ValueError):
    """A certificate or key that cannot be used; the message names the file."""


def server_context(certificate: Path, key: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """TLS for the server. With `client_ca`, a client may show a certificate that it signed. Raises CertificateError.

    A certificate that nobody known signed ends the handshake; the real server answers 401.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"the certificate `{certificate}` with key `{key}` cannot be used: {error}") from error
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(f"the certificate authority `{client_ca}` cannot be used: {error}") from error
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def user_of(certificate: Mapping[str, object] | None) -> User | None:
    """Whom a client certificate names; None without one, or without a common name.

    `certificate` is what `ssl.SSLSocket.getpeercert` gives: only ones that were verified are filled.
    """
    names: dict[str, list[str]] = {}
    subject = certificate.get("subject", ()) if certificate else ()
    for part in subject if isinstance(subject, tuple) else ():
        for name, value in part:
            names.setdefault(name, []).append(value)
    common = names.get("commonName", [])
    if not common:
        return None
    return User(common[-1], (*names.get("organizationName", []), AUTHENTICATED))
