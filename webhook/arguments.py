"""Settings of `moorage-webhook`, from its command line: nothing else reads flags or environment."""

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
    """What the process is told.

    Attributes:
        listen_address: Host and port; the host "" is every address.
        certificate: Where it comes from.
        kubeconfig: None for the ServiceAccount of the pod.
    """

    listen_address: tuple[str, int]
    certificate: TlsFiles | OwnCa
    kubeconfig: Path | None
    log_level: str
    log_format: str
    about_pods: PodSettings
    accounting: AccountingSettings


app = commands("moorage-webhook", "Validate Queues, and who may use accounted devices.")


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> WebhookSettings:
    """Settings from the command line, the environment and a file.

    Raises:
        SystemExit: With a sentence, on flags that make no sense.
    """
    settings: WebhookSettings = settings_of(app, argv, environ)
    return settings


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is no address such as :9443 or 10.0.0.1:9443")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _names(text: str) -> tuple[str, ...]:
    stripped = (name.strip() for name in text.split(","))
    names = tuple(dict.fromkeys(name for name in stripped if name))
    if not names:
        raise ValueError("at least one scheduler must be named")
    return names


def _namespaced(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise ValueError(f"{text!r} is no NAMESPACE/NAME")
    return namespace, name


def _hosts(text: str) -> frozenset[str]:
    """As a certificate says them: names in lower case, addresses in one notation."""
    found = frozenset(_host(name.strip()) for name in text.split(",")) - {""}
    if not found:
        raise ValueError("at least one name must be given")
    return found


def _host(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        if not text.isascii():
            raise ValueError(f"{text!r} is no DNS name") from None
        return text.lower()


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 1 / 1440 <= days <= 3650:
        raise ValueError(f"{text!r} is no number of days from a minute to 10 years")
    return days


@app.command(help="Validate Queues, and who may use accounted devices.")
def serve(
    listen_address: Annotated[
        Any,
        parsed(
            _address,
            metavar="[HOST]:PORT",
            help_="Without a host every address.",
            shown=":9443",
        ),
    ] = ("", 9443),
    scheduler_names: Annotated[
        Sequence[str],
        parsed(
            _names,
            metavar="NAME[,NAME...]",
            help_="Schedulers that may place pods on accounted devices; pods of namespaces that opt"
            " in are sent to the first.",
            shown="moorage",
        ),
    ] = ("moorage",),
    hold: Annotated[
        Hold,
        typer.Option(
            help="How pods of namespaces that opt in wait for quota: at a gate, or by being refused"
            " and tried again."
        ),
    ] = Hold.GATE,
    other_schedulers: Annotated[
        OtherSchedulers,
        typer.Option(
            help="Pods of other schedulers that ask for accounted devices; those that are allowed"
            " are charged only once they run."
        ),
    ] = OtherSchedulers.REFUSE,
    queue_label: Annotated[
        str, parsed(not_empty, metavar="KEY", help_="Names queues.", shown=QUEUE_LABEL)
    ] = QUEUE_LABEL,
    accounted_drivers: Annotated[
        Sequence[str],
        parsed(
            _names,
            metavar="NAME[,NAME...]",
            help_="The drivers that the policy moorage-allocations names; who writes a Queue that"
            " lists a class of another is warned.",
            shown=DRIVER_NAME,
        ),
    ] = (DRIVER_NAME,),
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "INFO",
    log_format: LogFormat = "text",
    config: Config = "",
    tls_cert_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A certificate, read again when the file changes."),
    ] = None,
    tls_private_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its key.")
    ] = None,
    tls_secret: Annotated[
        Sequence[str] | None,
        parsed(
            _namespaced,
            metavar="NAMESPACE/NAME",
            help_="Without files: where a CA of its own, certificate and keys are kept"
            f" (default: {'/'.join(SECRET)}).",
        ),
    ] = None,
    tls_names: Annotated[
        frozenset[str] | None,
        parsed(
            _hosts,
            metavar="NAME[,NAME...]",
            help_="DNS names and addresses by which it is called"
            f" (default: {SERVICE}.NAMESPACE.svc, with the namespace of the Secret).",
        ),
    ] = None,
    certificate_days: Annotated[
        float | None,
        parsed(
            _days,
            metavar="DAYS",
            help_="Life of a certificate, renewed after two thirds of it; its CA lives four times"
            f" as long (default: {DAYS:.0f}).",
        ),
    ] = None,
    webhook_configuration: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration whose"
            f" caBundle it writes (default: {REGISTRATION}).",
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
    """The files of a certificate, all of them or none; they exclude what is for an own CA."""
    given = {flag: path for flag, path in files.items() if path is not None}
    if not given:
        return None
    first = next(iter(given))
    if missing := sorted(files.keys() - given.keys()):
        raise refuse(f"{missing[0]} must be given too: {first} is of no use without it")
    if odd := [flag for flag, value in of_own_ca.items() if value is not None]:
        raise refuse(f"{odd[0]} is for the webhook's own CA: it does not go with {first}")
    return TlsFiles(*given.values())
