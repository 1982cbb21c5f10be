"""Creates and parses keys and certificates of the webhook's own CA.

Keys and serial numbers are random; the rest depends on the arguments only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIVES_OF_AN_AUTHORITY = 4
"""Lifetime of a CA, in lifetimes of a certificate. A CA signs in the first two thirds of its life,
and so outlives its certificates."""

BACKDATED = timedelta(hours=1)
"""The largest difference of the clocks of replicas and API servers."""

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion)
_SIGNS_CERTIFICATES = (False, False, False, False, False, True, True, False, False)
"""Arguments of `x509.KeyUsage`: only keyCertSign and cRLSign are set."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(compare=False)

    def key_pem(self) -> bytes:
        pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, pkcs8, plain)


def new_authority(life: timedelta, now: datetime) -> Pair:
    """A CA for certificates of this lifetime.

    Its name is unique, for clients that find an issuer by its name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    digest = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()
    name = _name(f"moorage-webhook-ca-{digest[:8]}")
    builder = (
        _builder(name, name, key, _first(life, now), now + LIVES_OF_AN_AUTHORITY * life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(*_SIGNS_CERTIFICATES), critical=True)
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


def new_certificate(signer: Pair, names: Iterable[str], life: timedelta, now: datetime) -> Pair:
    """A certificate for these names; it does not outlive its CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    last = min(now + life, signer.certificate.not_valid_after_utc)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key())
    hosts = x509.SubjectAlternativeName([_general_name(name) for name in sorted(names)])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    subject = _name("moorage-webhook")
    builder = (
        _builder(subject, signer.certificate.subject, key, _first(life, now), last)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(issuer, critical=False)
        .add_extension(hosts, critical=False)
    )
    return Pair(builder.sign(signer.key, hashes.SHA256()), key)


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """DNS names and addresses in a certificate."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return frozenset([*found.get_values_for_type(x509.DNSName), *addresses])


def pem_of(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)


def read_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates in their order; none if one of them is damaged."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except _UNREADABLE:
        return ()


def read_pair(certificates: Iterable[x509.Certificate], key_pem: bytes) -> Pair | None:
    """The first of these certificates that matches the key; None if none does."""
    try:
        key = serialization.load_pem_private_key(key_pem, password=None)
    except _UNREADABLE:
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey):
        for certificate in certificates:
            if certificate.public_key() == key.public_key():
                return Pair(certificate, key)
    return None


def _first(life: timedelta, now: datetime) -> datetime:
    return now - min(BACKDATED, life)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    first: datetime,
    last: datetime,
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(first)
        .not_valid_after(last)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
