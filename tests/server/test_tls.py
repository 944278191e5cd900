"""A certificate that cannot be shown is named, with what is wrong with it."""

import ssl
from pathlib import Path

import pytest

from policyengine.server.tls import CertificateUnusable, server_context
from tests.simulator.api_server.keys import Keys, needs_openssl

pytestmark = needs_openssl


def problem(certificate: Path, key: Path | None) -> str:
    with pytest.raises(CertificateUnusable) as caught:
        server_context(certificate, key)
    return str(caught.value)


def test_a_certificate_and_its_key_are_shown_with_no_old_protocol(tmp_path: Path) -> None:
    context = server_context(*Keys(tmp_path).sign("one", "/CN=127.0.0.1"))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_files_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    certificate, key = Keys(tmp_path).sign("one", "/CN=127.0.0.1")
    absent = tmp_path / "absent"
    assert problem(absent, key) == f"certificate `{absent}` cannot be used: no such file or directory"
    assert problem(certificate, absent) == f"key `{absent}` cannot be used: no such file or directory"
    assert "is a directory" in problem(tmp_path, key)


def test_files_that_hold_something_else_are_told(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    certificate, _ = keys.sign("one", "/CN=127.0.0.1")
    _, other = keys.sign("other", "/CN=127.0.0.1")
    assert problem(certificate, other).endswith(f"with key `{other}`: they do not belong together")
    assert problem(certificate, None).endswith("with a key in the same file: both must be PEM")
