"""Where the webhook's certificate comes from: files that somebody else writes, or its own CA."""

from __future__ import annotations

import argparse
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from kube.api import TlsFiles
from webhook.certificates.rotation import OwnCa

SECRET = ("moorage-system", "moorage-webhook-tls")
SERVICE = "moorage-webhook"
REGISTRATION = "moorage"
DAYS = 90.0

_FILES = {"tls_cert_file": "--tls-cert-file", "tls_private_key_file": "--tls-private-key-file"}
_OF_OWN_CA = {
    "tls_secret": "--tls-secret",
    "tls_names": "--tls-names",
    "certificate_days": "--certificate-days",
    "webhook_configuration": "--webhook-configuration",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("a certificate from files, read again when they change")
    files.add_argument("--tls-cert-file", type=Path, metavar="FILE")
    files.add_argument("--tls-private-key-file", type=Path, metavar="FILE")
    add = parser.add_argument_group("else: a CA of its own").add_argument
    add(
        "--tls-secret",
        type=_namespaced,
        metavar="NAMESPACE/NAME",
        help=f"where CA, certificate and keys are kept (default: {'/'.join(SECRET)})",
    )
    add(
        "--tls-names",
        type=_hosts,
        metavar="NAME[,NAME...]",
        help="DNS names and addresses by which it is called"
        f" (default: {SERVICE}.NAMESPACE.svc, with the namespace of the Secret)",
    )
    add(
        "--certificate-days",
        type=_days,
        metavar="DAYS",
        help="life of a certificate, renewed after two thirds of it; its CA lives four times as"
        f" long (default: {DAYS:.0f})",
    )
    add(
        "--webhook-configuration",
        metavar="NAME",
        help="the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration whose"
        f" caBundle it writes (default: {REGISTRATION})",
    )


def certificate_source(
    parser: argparse.ArgumentParser, given: argparse.Namespace
) -> TlsFiles | OwnCa:
    """What the flags say; ends with the parser's message where they contradict each other."""
    files = [flag for name, flag in _FILES.items() if getattr(given, name) is not None]
    if not files:
        return _own_ca(given)
    if len(files) < len(_FILES):
        (missing,) = set(_FILES.values()) - set(files)
        parser.error(f"{missing} must be given too: {files[0]} is of no use without it")
    for name, flag in _OF_OWN_CA.items():
        if getattr(given, name) is not None:
            parser.error(f"{flag} is for the webhook's own CA: it does not go with {files[0]}")
    return TlsFiles(given.tls_cert_file, given.tls_private_key_file)


def _own_ca(given: argparse.Namespace) -> OwnCa:
    namespace, name = given.tls_secret or SECRET
    return OwnCa(
        namespace,
        name,
        given.webhook_configuration or REGISTRATION,
        names=given.tls_names or frozenset({f"{SERVICE}.{namespace}.svc"}),
        life=timedelta(days=given.certificate_days or DAYS),
    )


def _namespaced(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAMESPACE/NAME")
    return namespace, name


def _hosts(text: str) -> frozenset[str]:
    """As a certificate says them: names in lower case, addresses in one notation."""
    found = frozenset(_host(name.strip()) for name in text.split(",")) - {""}
    if not found:
        raise argparse.ArgumentTypeError("at least one name must be given")
    return found


def _host(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        if not text.isascii():
            raise argparse.ArgumentTypeError(f"{text!r} is no DNS name") from None
        return text.lower()


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 1 / 1440 <= days <= 3650:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days from a minute to 10 years")
    return days
