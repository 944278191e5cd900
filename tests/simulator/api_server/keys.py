"""Certificates for tests."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM
DAY = timedelta(days=1)
NAMES = {"CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME}


class Keys:
    """A certificate authority and what it signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._write("ca", "/CN=ca", self._key, "/CN=ca")

    def sign(self, name: str, subject: str) -> tuple[Path, Path]:
        """A certificate and its key; the subject as `/O=group/CN=user`."""
        return self._write(name, subject, ec.generate_private_key(ec.SECP256R1()), "/CN=ca")

    def _write(self, name: str, subject: str, key: ec.EllipticCurvePrivateKey, issuer: str) -> tuple[Path, Path]:
        now, serial = datetime.now(UTC), x509.random_serial_number()
        builder = x509.CertificateBuilder(_name(issuer), _name(subject), key.public_key(), serial, now - DAY, now + DAY)
        is_authority = x509.BasicConstraints(ca=subject == issuer, path_length=None)
        made = builder.add_extension(is_authority, critical=True).sign(self._key, hashes.SHA256())
        certificate, written = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate.write_bytes(made.public_bytes(PEM))
        plain = serialization.NoEncryption()
        written.write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain))
        return certificate, written


def _name(subject: str) -> x509.Name:
    pairs = (part.partition("=")[::2] for part in subject.split("/")[1:])
    return x509.Name([x509.NameAttribute(NAMES[what], value) for what, value in pairs])
