"""Who a client is by its certificate, and whether it is one that is heard.

An authority signs for many: that a certificate is of it says only that its bearer is somebody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

KUBE_SCHEDULER = "system:kube-scheduler"
"""The subject of the certificate that kubeadm gives to kube-scheduler."""

_ALTERNATIVES = frozenset({"DNS", "URI"})


def client_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """The common names of a subject, then its alternative names that are DNS names or URIs.

    `certificate` is verified, and as Python's `ssl` decodes it.
    """
    return tuple(dict.fromkeys(_names(certificate)))


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for attributes in certificate.get("subject", ()):
        yield from (value for name, value in attributes if name == "commonName")
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in _ALTERNATIVES:
            yield value


def why_not_heard(certificate: Mapping[str, Any], allowed: frozenset[str]) -> str:
    """Why a client is not heard, as a sentence; "" where it is."""
    names = client_names(certificate)
    if not allowed.isdisjoint(names):
        return ""
    shown = " or ".join(f'"{name}"' for name in names) if names else "nobody"
    return f"Your certificate names {shown}, and none of these is in --client-names."
