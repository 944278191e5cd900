"""Certificates for tests, made by openssl."""

import shutil
import subprocess
from pathlib import Path

import pytest

OPENSSL = shutil.which("openssl")
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
"""RSA keys take a hundred times longer to find."""
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="there is no openssl on the PATH to make certificates with")


class Keys:
    """A certificate authority and what it signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._run("req", "-x509", *NEW_KEY, "-nodes", "-days", "2", "-subj", "/CN=ca", *self._out("ca"))

    def _run(self, *words: str) -> None:
        assert OPENSSL is not None
        subprocess.run([OPENSSL, *words], cwd=self.folder, check=True, capture_output=True)

    def _out(self, name: str) -> tuple[str, ...]:
        return ("-keyout", f"{name}.key", "-out", f"{name}.crt")

    def sign(self, name: str, subject: str) -> tuple[Path, Path]:
        """A certificate and its key."""
        request = f"{name}.csr"
        self._run("req", *NEW_KEY, "-nodes", "-subj", subject, "-keyout", f"{name}.key", "-out", request)
        made = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-out", f"{name}.crt")
        self._run("x509", "-req", "-in", request, *made)
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"
