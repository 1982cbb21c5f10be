"""Certificates: a camera's own, for an address; and those of an authority, for names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from driver.handlers.sdk_requests import TlsFiles


def self_signed(address: str = "127.0.0.1") -> tuple[str, str]:
    """The certificate and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("camera")
    names: list[x509.GeneralName] = [x509.IPAddress(ip_address(address))]
    certificate = _signed(name, name, key, key, names)
    return _pem(certificate), _pem_key(key)


class Authority:
    """Signs certificates, and puts them into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key, name = ec.generate_private_key(ec.SECP256R1()), _name("authority")
        folder.mkdir()
        (folder / "ca.pem").write_text(_pem(_signed(name, name, self._key, self._key, [])))

    def issue(self, name: str) -> TlsFiles:
        """The files of whoever bears this name."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _signed(
            _name(name), _name("authority"), key, self._key, [x509.DNSName(name)], ca=False
        )
        files = TlsFiles(
            self.folder / "ca.pem", self.folder / f"{name}.pem", self.folder / f"{name}.key"
        )
        files.certificate.write_text(_pem(certificate))
        files.key.write_text(_pem_key(key))
        return files


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuers: ec.EllipticCurvePrivateKey,
    names: list[x509.GeneralName],
    *,
    ca: bool = True,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
    return builder.sign(issuers, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _pem_key(key: ec.EllipticCurvePrivateKey) -> str:
    encoding = serialization.Encoding.PEM
    none = serialization.NoEncryption()
    return key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, none).decode()
