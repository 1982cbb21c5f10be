"""Settings of `moorage-webhook`: its command line and environment, parsed once."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube.api import TlsFiles
from scheduler_plugin.api import QUEUE_LABEL, AccountingSettings
from webhook.certificates.rotation import OwnCa
from webhook.certificates.settings import add_flags, certificate_source
from webhook.surroundings import Hold, OtherSchedulers, PodSettings


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
    about_pods: PodSettings
    accounting: AccountingSettings


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> WebhookSettings:
    """Settings from the command line; flags win over the environment.

    Raises:
        SystemExit: With argparse's message, on flags that make no sense.
    """
    parser = _parser(environ)
    arguments = parser.parse_args(argv)
    return WebhookSettings(
        listen_address=arguments.listen_address,
        certificate=certificate_source(parser, arguments),
        kubeconfig=arguments.kubeconfig,
        log_level=arguments.log_level,
        about_pods=PodSettings(
            scheduler_names=arguments.scheduler_names,
            hold=Hold(arguments.hold),
            other_schedulers=OtherSchedulers(arguments.other_schedulers),
        ),
        accounting=AccountingSettings(queue_label=arguments.queue_label),
    )


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    kubeconfig = environ.get("KUBECONFIG")
    parser = argparse.ArgumentParser(
        prog="moorage-webhook", description="Validate Queues, and who may use accounted devices."
    )
    add = parser.add_argument
    add(
        "--listen-address",
        default=("", 9443),
        type=_address,
        metavar="[HOST]:PORT",
        help="without a host every address (default: :9443)",
    )
    add(
        "--scheduler-names",
        default=("moorage",),
        type=_names,
        metavar="NAME[,NAME...]",
        help="schedulers that may place pods on accounted devices; pods of namespaces that opt in"
        " are sent to the first (default: moorage)",
    )
    add(
        "--hold",
        default=str(Hold.GATE),
        choices=[str(hold) for hold in Hold],
        help="how pods of namespaces that opt in wait for quota: at a gate, or by being refused"
        " and tried again (default: Gate)",
    )
    add(
        "--other-schedulers",
        default=str(OtherSchedulers.REFUSE),
        choices=[str(choice) for choice in OtherSchedulers],
        help="pods of other schedulers that ask for accounted devices; those that are allowed are"
        " charged only once they run (default: Refuse)",
    )
    add("--queue-label", default=QUEUE_LABEL, type=_not_empty, metavar="KEY")
    add(
        "--kubeconfig",
        default=Path(kubeconfig) if kubeconfig else None,
        type=Path,
        help="default: $KUBECONFIG, else the pod's ServiceAccount",
    )
    add("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    add_flags(parser)
    return parser


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no address such as :9443 or 10.0.0.1:9443")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _names(text: str) -> tuple[str, ...]:
    stripped = (name.strip() for name in text.split(","))
    names = tuple(dict.fromkeys(name for name in stripped if name))
    if not names:
        raise argparse.ArgumentTypeError("at least one scheduler must be named")
    return names


def _not_empty(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text
