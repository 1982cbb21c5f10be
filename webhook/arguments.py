"""Settings of `moorage-webhook`; no other module reads flags or the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

import typer

from driver.api import DRIVER_NAME
from kube.api import (
    Config,
    Kubeconfig,
    LogFormat,
    LogLevel,
    TlsFiles,
    commands,
    not_empty,
    parsed,
    refuse,
    settings_of,
)
from scheduler_plugin.api import QUEUE_LABEL, AccountingSettings
from webhook.certificates.rotation import OwnCa
from webhook.rules.surroundings import Hold, OtherSchedulers, PodSettings

SECRET = ("moorage-system", "moorage-webhook-tls")
SERVICE = "moorage-webhook"
REGISTRATION = "moorage"
DAYS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Settings of the process.

    Attributes:
        listen_address: Host and port; the host "" is every address.
        certificate: The source of the serving certificate.
        kubeconfig: None for the ServiceAccount of the pod.
    """

    listen_address: tuple[str, int]
    certificate: TlsFiles | OwnCa
    kubeconfig: Path | None
    log_level: str
    log_format: str
    about_pods: PodSettings
    accounting: AccountingSettings


app = commands("moorage-webhook", "Validate Queues, and the use of accounted devices.")


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> WebhookSettings:
    """Settings from the command line, the environment and a file.

    Raises:
        SystemExit: A flag is invalid; the message says which.
    """
    settings: WebhookSettings = settings_of(app, argv, environ)
    return settings


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not an address such as :9443 or 10.0.0.1:9443")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _names(text: str) -> tuple[str, ...]:
    stripped = (name.strip() for name in text.split(","))
    names = tuple(dict.fromkeys(name for name in stripped if name))
    if not names:
        raise ValueError("at least one name must be given")
    return names


def _namespaced(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise ValueError(f"{text!r} is not NAMESPACE/NAME")
    return namespace, name


def _hosts(text: str) -> frozenset[str]:
    """DNS names in lower case and addresses in one notation, as in a certificate."""
    found = frozenset(_host(name.strip()) for name in text.split(",")) - {""}
    if not found:
        raise ValueError("at least one name must be given")
    return found


def _host(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        if not text.isascii():
            raise ValueError(f"{text!r} is not a DNS name in ASCII") from None
        return text.lower()


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 1 / 1440 <= days <= 3650:
        raise ValueError(f"{text!r} is not a number of days from 0.0007 (a minute) to 3650")
    return days


@app.command(help="Validate Queues, and the use of accounted devices.")
def serve(
    listen_address: Annotated[
        Any,
        parsed(
            _address,
            metavar="[HOST]:PORT",
            help_="Address to listen on; without a host every address.",
            shown=":9443",
        ),
    ] = ("", 9443),
    scheduler_names: Annotated[
        Sequence[str],
        parsed(
            _names,
            metavar="NAME[,NAME...]",
            help_="Schedulers that may place pods on accounted devices. Pods of namespaces that opt"
            " in get the first one.",
            shown="moorage",
        ),
    ] = ("moorage",),
    hold: Annotated[
        Hold,
        typer.Option(
            help="How pods of namespaces that opt in wait for quota: by a scheduling gate, or by"
            " retries of the scheduler."
        ),
    ] = Hold.GATE,
    other_schedulers: Annotated[
        OtherSchedulers,
        typer.Option(
            help="Whether pods of other schedulers may ask for accounted devices. Allowed ones are"
            " charged only once they run."
        ),
    ] = OtherSchedulers.REFUSE,
    queue_label: Annotated[
        str,
        parsed(not_empty, metavar="KEY", help_="Label that names a queue.", shown=QUEUE_LABEL),
    ] = QUEUE_LABEL,
    accounted_drivers: Annotated[
        Sequence[str],
        parsed(
            _names,
            metavar="NAME[,NAME...]",
            help_="The drivers that the policy moorage-allocations names. A Queue that lists a"
            " DeviceClass of another driver gets a warning.",
            shown=DRIVER_NAME,
        ),
    ] = (DRIVER_NAME,),
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "INFO",
    log_format: LogFormat = "text",
    config: Config = "",
    tls_cert_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Serving certificate in PEM, read again when the file changes."
        ),
    ] = None,
    tls_private_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Key of --tls-cert-file, in PEM.")
    ] = None,
    tls_secret: Annotated[
        Sequence[str] | None,
        parsed(
            _namespaced,
            metavar="NAMESPACE/NAME",
            help_="Secret of the webhook's own CA, certificate and keys; not with --tls-cert-file"
            f" (default: {'/'.join(SECRET)}).",
        ),
    ] = None,
    tls_names: Annotated[
        frozenset[str] | None,
        parsed(
            _hosts,
            metavar="NAME[,NAME...]",
            help_="DNS names and addresses in the certificate of its own CA"
            f" (default: {SERVICE}.NAMESPACE.svc, with the namespace of the Secret).",
        ),
    ] = None,
    certificate_days: Annotated[
        float | None,
        parsed(
            _days,
            metavar="DAYS",
            help_="Lifetime of a certificate of its own CA, renewed after two thirds of it; the CA"
            f" lives four times as long (default: {DAYS:.0f}).",
        ),
    ] = None,
    webhook_configuration: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration"
            f" whose caBundle it writes (default: {REGISTRATION}).",
        ),
    ] = None,
) -> WebhookSettings:
    files = {"--tls-cert-file": tls_cert_file, "--tls-private-key-file": tls_private_key_file}
    of_own_ca = {
        "--tls-secret": tls_secret,
        "--tls-names": tls_names,
        "--certificate-days": certificate_days,
        "--webhook-configuration": webhook_configuration,
    }
    namespace, name = tls_secret or SECRET
    certificate = _files(files, of_own_ca) or OwnCa(
        namespace,
        name,
        webhook_configuration or REGISTRATION,
        names=tls_names or frozenset({f"{SERVICE}.{namespace}.svc"}),
        life=timedelta(days=certificate_days or DAYS),
    )
    return WebhookSettings(
        listen_address=listen_address,
        certificate=certificate,
        kubeconfig=kubeconfig,
        log_level=log_level,
        log_format=log_format,
        about_pods=PodSettings(
            scheduler_names=tuple(scheduler_names), hold=hold, other_schedulers=other_schedulers
        ),
        accounting=AccountingSettings(
            queue_label=queue_label, accounted_drivers=tuple(accounted_drivers)
        ),
    )


def _files(
    files: Mapping[str, Path | None], of_own_ca: Mapping[str, object | None]
) -> TlsFiles | None:
    """The files of the certificate, or None; they exclude the flags of the own CA."""
    given = {flag: path for flag, path in files.items() if path is not None}
    if not given:
        return None
    first = next(iter(given))
    if missing := sorted(files.keys() - given.keys()):
        raise refuse(f"{missing[0]} must be given too: {first} needs it")
    if odd := [flag for flag, value in of_own_ca.items() if value is not None]:
        raise refuse(f"{odd[0]} is for the webhook's own CA: remove it, or {first}")
    return TlsFiles(*given.values())
