"""The cluster's certificate authority on disk: makes keys and signs certificates."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local_cluster.certificates import CertificateSpec
from local_cluster.files import write_atomically

# A throw-away cluster needs no renewal; clocks of host and pods are the same.
LIFETIME = timedelta(days=365)
SKEW = timedelta(minutes=5)


class Authority:
    """Signs certificates with a CA that is made on first use and kept in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate_file = folder / "ca.crt"
        self._key_file = folder / "ca.key"
        if not self.certificate_file.exists() or not self._key_file.exists():
            self._make_ca()
        self._key = _load_key(self._key_file)
        self._name = x509.load_pem_x509_certificate(self.certificate_file.read_bytes()).subject

    def issue(self, spec: CertificateSpec, folder: Path | None = None) -> tuple[Path, Path]:
        """Write `<name>.crt` and `<name>.key`, unless they exist for the same spec."""
        target = folder or self.folder
        certificate_file, key_file = target / f"{spec.name}.crt", target / f"{spec.name}.key"
        marker = target / f".{spec.name}.spec"
        if marker.exists() and marker.read_text() == repr(spec):
            return certificate_file, key_file
        key = ec.generate_private_key(ec.SECP256R1())
        write_atomically(key_file, _pem(key))
        write_atomically(certificate_file, self._sign(spec, key), 0o644)
        write_atomically(marker, repr(spec))
        return certificate_file, key_file

    def issue_service_account_key(self) -> tuple[Path, Path]:
        """RSA, since the API server's token signer knows RS256 everywhere."""
        public_file, key_file = self.folder / "sa.pub", self.folder / "sa.key"
        if not public_file.exists():
            key = rsa.generate_private_key(65537, 2048)
            write_atomically(key_file, _pem(key))
            public = key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            write_atomically(public_file, public, 0o644)
        return public_file, key_file

    def _make_ca(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "moorage-local")])
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        certificate = (
            _builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        write_atomically(self._key_file, _pem(key))
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        write_atomically(self.certificate_file, pem, 0o644)

    def _sign(self, spec: CertificateSpec, key: ec.EllipticCurvePrivateKey) -> bytes:
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        issuer_key = self._key.public_key()
        builder = (
            _builder(_subject(spec), self._name, key.public_key())
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False
            )
        )
        if spec.hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in spec.hosts])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _subject(spec: CertificateSpec) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, spec.common_name)]
    if spec.organization:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, spec.organization))
    return x509.Name(parts)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} holds no EC key")
    return key
