"""Settings of `moorage-webhook`: a flag for each field; no other module reads flags or environment.

`WebhookSettings` is the command line, the environment, the file of `--config` and the page of
flags in one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from driver.api import DRIVER_NAME
from kube.live_tls import TlsFiles
from kube.processes.api import (
    Config,
    Kubeconfig,
    LogFormat,
    LogLevel,
    commands,
    not_empty,
    parsed,
    refuse,
    settings_of,
)
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings
from webhook import arguments as texts
from webhook.certificates.rotation import OwnCa
from webhook.rules.rule_context import Hold, OtherSchedulers, PodSettings

SECRET = ("moorage-system", "moorage-webhook-tls")
SERVICE = "moorage-webhook"
REGISTRATION = "moorage"
DAYS = 90.0

ABOUT = "Validate Queues, and the use of accounted devices."

app = commands("moorage-webhook", ABOUT)


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> WebhookSettings:
    """Settings from the command line, the environment and a file.

    Raises:
        SystemExit: A flag is invalid; the message says which.
    """
    settings: WebhookSettings = settings_of(app, argv, environ)
    return settings


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    """Settings of the process."""

    listen_address: Annotated[
        Any,
        parsed(
            texts.address,
            metavar="[HOST]:PORT",
            help_="Serve reviews, probes and metrics at this address; without a host at every one.",
            shown=":9443",
        ),
    ] = ("", 9443)
    scheduler_names: Annotated[
        Sequence[str],
        parsed(
            texts.names,
            metavar="NAME[,NAME...]",
            help_="Let these schedulers place pods on accounted devices. Pods of namespaces that"
            " opt in get the first one.",
            shown="moorage",
        ),
    ] = ("moorage",)
    hold: Annotated[
        Hold,
        typer.Option(
            help="Choose how pods of namespaces that opt in wait for quota: by a scheduling gate,"
            " or by retries of the scheduler."
        ),
    ] = Hold.GATE
    other_schedulers: Annotated[
        OtherSchedulers,
        typer.Option(
            help="Refuse or allow pods of other schedulers that ask for accounted devices. Allowed"
            " ones are charged only once they run."
        ),
    ] = OtherSchedulers.REFUSE
    queue_label: Annotated[
        str,
        parsed(not_empty, metavar="KEY", help_="Read queues from this label.", shown=QUEUE_LABEL),
    ] = QUEUE_LABEL
    accounted_drivers: Annotated[
        Sequence[str],
        parsed(
            texts.names,
            metavar="NAME[,NAME...]",
            help_="Name the drivers that the policy moorage-allocations guards. A Queue that lists"
            " a DeviceClass of another driver gets a warning.",
            shown=DRIVER_NAME,
        ),
    ] = (DRIVER_NAME,)
    kubeconfig: Kubeconfig = None
    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"
    config: Config = ""
    tls_cert_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Serve with this certificate in PEM, read again when the file changes (default: a"
            " certificate of the webhook's own CA).",
        ),
    ] = None
    tls_private_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the key of --tls-cert-file, in PEM, from here."),
    ] = None
    tls_secret: Annotated[
        Sequence[str] | None,
        parsed(
            texts.namespaced,
            metavar="NAMESPACE/NAME",
            help_="Keep the webhook's own CA, its certificate and keys in this Secret; not with"
            f" --tls-cert-file (default: {'/'.join(SECRET)}).",
        ),
    ] = None
    tls_names: Annotated[
        frozenset[str] | None,
        parsed(
            texts.hosts,
            metavar="NAME[,NAME...]",
            help_="Put these DNS names and addresses into the certificate of the own CA"
            f" (default: {SERVICE}.NAMESPACE.svc, with the namespace of the Secret).",
        ),
    ] = None
    certificate_days: Annotated[
        float | None,
        parsed(
            texts.days,
            metavar="DAYS",
            help_="Set the lifetime of a certificate of the own CA, renewed after two thirds of it;"
            f" the CA lives four times as long (default: {DAYS:.0f}).",
        ),
    ] = None
    webhook_configuration: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Write the caBundle of the ValidatingWebhookConfiguration and of the"
            f" MutatingWebhookConfiguration with this name (default: {REGISTRATION}).",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuse files of a certificate that are not whole, or that come with an own CA."""
        files = {
            "--tls-cert-file": self.tls_cert_file,
            "--tls-private-key-file": self.tls_private_key_file,
        }
        if not (given := [flag for flag, path in files.items() if path is not None]):
            return
        if missing := [flag for flag in files if flag not in given]:
            raise refuse(f"{missing[0]} must be given too: {given[0]} needs it")
        own = {
            "--tls-secret": self.tls_secret,
            "--tls-names": self.tls_names,
            "--certificate-days": self.certificate_days,
            "--webhook-configuration": self.webhook_configuration,
        }
        if odd := [flag for flag, value in own.items() if value is not None]:
            raise refuse(f"{odd[0]} is for the webhook's own CA: remove it, or {given[0]}")

    @property
    def certificate(self) -> TlsFiles | OwnCa:
        """The source of the serving certificate."""
        if self.tls_cert_file and self.tls_private_key_file:
            return TlsFiles(self.tls_cert_file, self.tls_private_key_file)
        namespace, name = self.tls_secret or SECRET
        return OwnCa(
            namespace,
            name,
            self.webhook_configuration or REGISTRATION,
            names=self.tls_names or frozenset({f"{SERVICE}.{namespace}.svc"}),
            life=timedelta(days=self.certificate_days or DAYS),
        )

    @property
    def about_pods(self) -> PodSettings:
        return PodSettings(
            scheduler_names=tuple(self.scheduler_names),
            hold=self.hold,
            other_schedulers=self.other_schedulers,
        )

    @property
    def accounting(self) -> AccountingSettings:
        return AccountingSettings(
            queue_label=self.queue_label, accounted_drivers=tuple(self.accounted_drivers)
        )


app.command(help=ABOUT)(WebhookSettings)
