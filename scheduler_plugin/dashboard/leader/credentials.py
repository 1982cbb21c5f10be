"""The Secret with which the elected plugin and the dashboard authenticate to each other.

The elected plugin makes all of its data at once, and renews it in time. Each pair of certificates
has an authority of its own, so that a certificate of an earlier pair is not accepted.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta

from cryptography import x509

from kube.shapes.reading import JsonObject
from scheduler_plugin.extender.mutual_certificates import (
    MutualCertificates,
    Names,
    mutual_certificates,
)

HOST = "moorage-scheduler-plugin"
"""The name in the plugin's certificate; it does not depend on the plugin's address."""

CLIENT = "moorage-dashboard"
NAMES = Names(authority="moorage-dashboard-ca", server=HOST, host=HOST, client=CLIENT)

LIFE = timedelta(days=90)
RENEWED_AFTER = 2 / 3
"""The part of their life after which certificates are renewed."""

KEYS = {
    "authority": "ca.crt",
    "server": "tls.crt",
    "server_key": "tls.key",
    "client": "client.crt",
    "client_key": "client.key",
}
"""The key of each part in the Secret."""


def new_certificates(now: datetime) -> MutualCertificates:
    """Certificates for both processes."""
    return mutual_certificates(NAMES, LIFE, now)


def certificates_in(secret: JsonObject) -> MutualCertificates | None:
    """The certificates in a Secret; None if a part is missing, or is not base64."""
    data = secret.get("data") or {}
    try:
        parts = {part: b64decode(data[key], validate=True) for part, key in KEYS.items()}
    except (KeyError, ValueError):
        return None
    return MutualCertificates(**parts)


def secret_data(made: MutualCertificates) -> Mapping[str, str]:
    """The `data` of the Secret."""
    parts = ((KEYS[part.name], getattr(made, part.name)) for part in fields(made))
    return {key: b64encode(value).decode() for key, value in parts}


def is_due(found: MutualCertificates, now: datetime) -> bool:
    """Whether certificates must be renewed: they are old, or cannot be parsed."""
    try:
        certificates = [
            x509.load_pem_x509_certificate(pem)
            for pem in (found.authority, found.server, found.client)
        ]
    except (ValueError, x509.InvalidVersion):
        return True
    return any(_is_old(one, now) for one in certificates)


def _is_old(certificate: x509.Certificate, now: datetime) -> bool:
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return not first <= now < first + RENEWED_AFTER * (last - first)
