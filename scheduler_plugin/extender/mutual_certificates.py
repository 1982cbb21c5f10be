"""Certificates of two processes that trust only each other.

One authority signs both certificates, and its key is not stored: it signs nothing else. The keys
are random; everything else follows from the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATED = timedelta(hours=1)
"""How far a machine's clock may be behind."""

SERVER_AUTH, CLIENT_AUTH = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH

_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names in the certificates.

    Attributes:
        authority: Common name of the authority.
        server: Common name of the server.
        host: The DNS name or IP address by which the client knows the server.
        client: Common name of the client.
    """

    authority: str
    server: str
    host: str
    client: str


@dataclass(frozen=True, slots=True)
class MutualCertificates:
    """The certificates and keys of both processes, in PEM."""

    authority: bytes
    server: bytes
    server_key: bytes
    client: bytes
    client_key: bytes


def mutual_certificates(names: Names, life: timedelta, now: datetime) -> MutualCertificates:
    """New certificates, which expire `life` after now."""
    authority, server, client = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    end = now + life
    root = _builder(names.authority, names.authority, (authority, authority), (now, end))
    server_builder = _leaf(names.server, names.authority, (server, authority), (now, end))
    client_builder = _leaf(names.client, names.authority, (client, authority), (now, end))
    host = x509.SubjectAlternativeName([_general_name(names.host)])
    return MutualCertificates(
        authority=_signed(_that_signs(root), authority),
        server=_signed(
            _with_usage(server_builder, SERVER_AUTH).add_extension(host, critical=False), authority
        ),
        server_key=_key_pem(server),
        client=_signed(_with_usage(client_builder, CLIENT_AUTH), authority),
        client_key=_key_pem(client),
    )


def _that_signs(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    """The authority: RFC 5280 demands the usage beside the length of the path."""
    signs = x509.BasicConstraints(ca=True, path_length=0)
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    return builder.add_extension(signs, critical=True).add_extension(usage, critical=True)


def _leaf(
    name: str, issuer: str, keys: tuple[_Key, _Key], times: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    signs_none = x509.BasicConstraints(ca=False, path_length=None)
    return _builder(name, issuer, keys, times).add_extension(signs_none, critical=True)


def _builder(
    name: str, issuer: str, keys: tuple[_Key, _Key], times: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    """`keys` are the subject's and the signer's."""
    (key, signer), (now, end) = keys, times
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder(_name(issuer), _name(name), key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(end)
        .add_extension(subject_key, critical=False)
        .add_extension(signed_by, critical=False)
    )


def _with_usage(
    builder: x509.CertificateBuilder, usage: x509.ObjectIdentifier
) -> x509.CertificateBuilder:
    return builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)


def _signed(builder: x509.CertificateBuilder, signer: _Key) -> bytes:
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pem(key: _Key) -> bytes:
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, pkcs8, plain)
