"""Makes an authority for the plugin and kube-scheduler; its key signs twice and is kept nowhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube.api import wall_clock
from scheduler_plugin.extender.certificate_files import (
    AUTHORITY,
    CALLER,
    CALLER_KEY,
    KEYS,
    SERVER,
    SERVER_KEY,
)
from scheduler_plugin.extender.listening import KUBE_SCHEDULER

LIFE = timedelta(days=3650)
"""As that of kubeadm's authorities: at its end the cluster would schedule no pod. Both keys stay on
one machine, readable for root alone."""

BACKDATED = timedelta(hours=1)
"""By how much a machine's clock may be set back."""

HOST = "127.0.0.1"
AUTHORITY_NAME = "moorage-scheduler-plugin-ca"
SERVER_AUTH, CLIENT_AUTH = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH

_Key = ec.EllipticCurvePrivateKey


def write_certificates(folder: Path) -> None:
    """Write all five files into a folder that has none of them.

    Raises:
        FileExistsError: One is there: kube-scheduler may use it.
        OSError: The folder cannot be written.
    """
    made = _made(wall_clock())
    for name in made:
        if (folder / name).exists():
            raise FileExistsError(f"{folder / name} is there already: delete it first, to renew it")
    for name, content in made.items():
        mode = 0o600 if name in KEYS else 0o644
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "wb") as file:
            file.write(content)


def _made(now: datetime) -> Mapping[str, bytes]:
    authority, server, caller = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    host = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
    root = _begun(AUTHORITY_NAME, authority, authority, now)
    shown = _leaf("moorage-scheduler-plugin", server, authority, now)
    asks = _leaf(KUBE_SCHEDULER, caller, authority, now)
    signs = x509.BasicConstraints(ca=True, path_length=0)
    return {
        AUTHORITY: _signed(root.add_extension(signs, critical=True), authority),
        SERVER: _signed(_used(shown, SERVER_AUTH).add_extension(host, critical=False), authority),
        SERVER_KEY: _key_pem(server),
        CALLER: _signed(_used(asks, CLIENT_AUTH), authority),
        CALLER_KEY: _key_pem(caller),
    }


def _leaf(name: str, key: _Key, signer: _Key, now: datetime) -> x509.CertificateBuilder:
    signs_none = x509.BasicConstraints(ca=False, path_length=None)
    return _begun(name, key, signer, now).add_extension(signs_none, critical=True)


def _begun(name: str, key: _Key, signer: _Key, now: datetime) -> x509.CertificateBuilder:
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder(_name(AUTHORITY_NAME), _name(name), key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + LIFE)
        .add_extension(subject_key, critical=False)
        .add_extension(signed_by, critical=False)
    )


def _used(
    builder: x509.CertificateBuilder, usage: x509.ObjectIdentifier
) -> x509.CertificateBuilder:
    return builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)


def _signed(builder: x509.CertificateBuilder, signer: _Key) -> bytes:
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_pem(key: _Key) -> bytes:
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, pkcs8, plain)
