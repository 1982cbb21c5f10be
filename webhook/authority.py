"""The webhook's own CA: keys, certificates and signatures, as the Secret holds them.

What it makes is random, and otherwise a function of its arguments: the contents of a Secret go in,
and come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from ipaddress import ip_address
from typing import TypeAlias

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.certificates import Certificate, Kept, Policy

CA_CERTIFICATES = "ca.crt"
CA_KEY = "ca.key"
CERTIFICATE = "tls.crt"
KEY = "tls.key"

Data: TypeAlias = Mapping[str, bytes]

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion)
_SIGNS_ONLY = (True, False, False, False, False, False, False, False, False)
_SIGNS_CERTIFICATES = (False, False, False, False, False, True, True, False, False)
"""Key usages: signatures, repudiation, three kinds of encryption, certificates, lists, two more."""


def read(data: Data) -> Kept:
    """What is of use; whatever is damaged, or belongs to something else, is left out."""
    authorities = _load(data.get(CA_CERTIFICATES, b""))
    trusted = tuple(_view(one) for one in authorities)
    key = _private_key(data.get(CA_KEY, b""))
    public = key.public_key() if isinstance(key, ec.EllipticCurvePrivateKey) else None
    with_key = [_view(one) for one in authorities if public and one.public_key() == public]
    return Kept(trusted, with_key[-1] if with_key else None, _served(data, authorities))


def bundle(pem: bytes) -> tuple[Certificate, ...]:
    """The authorities of a `caBundle`; none where it is damaged."""
    return tuple(_view(one) for one in _load(pem))


def joined(trusted: Iterable[Certificate]) -> bytes:
    return b"".join(one.pem for one in trusted)


def with_authority(
    data: Data, trusted: Iterable[Certificate], policy: Policy, now: datetime
) -> dict[str, bytes]:
    """A new authority beside those; the certificate stays if any of them signed it."""
    key = ec.generate_private_key(ec.SECP256R1())
    new = _authority(key, policy, now)
    changed = {**data, CA_CERTIFICATES: joined((*trusted, _view(new))), CA_KEY: _key_pem(key)}
    if read(changed).served is None:
        changed |= {CERTIFICATE: b"", KEY: b""}
    return changed


def with_trusted(data: Data, trusted: Iterable[Certificate]) -> dict[str, bytes]:
    return {**data, CA_CERTIFICATES: joined(trusted)}


def with_certificate(
    data: Data, names: frozenset[str], policy: Policy, now: datetime
) -> dict[str, bytes]:
    """A new certificate of the authority whose key is there."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer, signer_key = read(data).signer, _private_key(data.get(CA_KEY, b""))
    if signer is None or not isinstance(signer_key, ec.EllipticCurvePrivateKey):
        raise ValueError("no authority whose key is there")
    authority = x509.load_pem_x509_certificate(signer.pem)
    builder = _builder(_name("moorage-webhook"), authority.subject, key, policy.span(signer, now))
    certificate = _for_server(builder, signer_key.public_key(), names).sign(
        signer_key, hashes.SHA256()
    )
    return {**data, CERTIFICATE: _pem(certificate), KEY: _key_pem(key)}


def provisional(policy: Policy, now: datetime) -> tuple[bytes, bytes]:
    """A certificate and its key that nobody trusts, for probes before there is another."""
    data = with_certificate(with_authority({}, (), policy, now), policy.names, policy, now)
    return data[CERTIFICATE], data[KEY]


def _served(data: Data, authorities: list[x509.Certificate]) -> Certificate | None:
    """The certificate, if all that its use takes is there."""
    chain = _load(data.get(CERTIFICATE, b""))
    key = _public_key(data.get(KEY, b""))
    if not chain or key is None or chain[0].public_key() != key:
        return None
    for authority in reversed(authorities):
        with suppress(ValueError, TypeError, InvalidSignature):
            chain[0].verify_directly_issued_by(authority)
            return _view(chain[0], _identity(authority))
    return None


def _view(certificate: x509.Certificate, signed_by: str = "") -> Certificate:
    return Certificate(
        identity=_identity(certificate),
        signed_by=signed_by,
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        names=_names(certificate),
        pem=_pem(certificate),
    )


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return frozenset([*found.get_values_for_type(x509.DNSName), *addresses])


def _authority(key: ec.EllipticCurvePrivateKey, policy: Policy, now: datetime) -> x509.Certificate:
    """Its name tells it from the one before, for those who look for an issuer by its name."""
    digest = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()
    name = _name(f"moorage-webhook-ca-{digest[:8]}")
    return (
        _builder(name, name, key, policy.authority_span(now))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(*_SIGNS_CERTIFICATES), critical=True)
        .sign(key, hashes.SHA256())
    )


def _for_server(
    builder: x509.CertificateBuilder, signer: ec.EllipticCurvePublicKey, names: frozenset[str]
) -> x509.CertificateBuilder:
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer)
    hosts = x509.SubjectAlternativeName([_general_name(name) for name in sorted(names)])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(*_SIGNS_ONLY), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(issuer, critical=False)
        .add_extension(hosts, critical=False)
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    span: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(span[0])
        .not_valid_after(span[1])
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _load(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except _UNREADABLE:
        return []


def _public_key(pem: bytes) -> PublicKeyTypes | None:
    key = _private_key(pem)
    return key.public_key() if key else None


def _private_key(pem: bytes) -> PrivateKeyTypes | None:
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except _UNREADABLE:
        return None


def _identity(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
