"""The certificate that a server of ours shows."""

from __future__ import annotations

import ssl
from pathlib import Path


class CertificateUnusable(Exception):
    """A certificate, or its key, that no server can show; one sentence that names the file."""


def server_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """TLS 1.2 or later with this certificate; without `key` the key is in the same file. Raises
    `CertificateUnusable`."""
    _check_readable("certificate", certificate)
    if key is not None:
        _check_readable("key", key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        where = f"key `{key}`" if key is not None else "a key in the same file"
        known = "they do not belong together" if error.reason == "KEY_VALUES_MISMATCH" else "both must be PEM"
        raise CertificateUnusable(f"certificate `{certificate}` cannot be used with {where}: {known}") from None
    return context


def _check_readable(what: str, path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CertificateUnusable(f"{what} `{path}` cannot be used: {reason}") from None
