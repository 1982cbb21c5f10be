"""Settings of `moorage-scheduler-plugin`: its command line and environment, parsed once.

Nothing else reads flags or environment variables.
"""

from __future__ import annotations

import argparse
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from driver.api import Problem
from kube.api import Resource
from scheduler_plugin.extender.client_names import KUBE_SCHEDULER
from scheduler_plugin.extender.kube_scheduler_lease import LeaseSettings
from scheduler_plugin.extender.listening import (
    ADDRESS_FLAG,
    PAGES_FLAG,
    Listening,
    TlsFiles,
    parse_listening,
    parse_pages_address,
)
from scheduler_plugin.extender.scheduler_configuration import CallerFiles
from scheduler_plugin.keeping.leftovers import GRACE as LEFTOVER_GRACE
from scheduler_plugin.objects.names import (
    NO_QUEUE,
    QUEUE_LABEL,
    AccountingSettings,
    OrphanPolicy,
    OwnerLifetime,
    QueueName,
)

_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL_KEY = re.compile(rf"({_NAME}/)?[A-Za-z0-9]([-_.A-Za-z0-9]{{0,61}}[A-Za-z0-9])?")
_LONGEST_SECONDS = 86_400
_LARGEST_PRIORITY = 2_000_001_000
"""That of system-node-critical: no pod has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Settings of `moorage-scheduler-plugin serve`.

    Attributes:
        kubeconfig: None for the ServiceAccount of the pod.
        instance: This process's name in Events.
        listening: Where kube-scheduler calls.
        pages: Where people and probes read.
        leftover_grace: How long what refused bindings leave on claims stays.
        pod_groups: The kinds whose objects say which queue the pods of a group have.
    """

    kubeconfig: Path | None
    log_level: str
    instance: str
    listening: Listening
    pages: Listening
    lease: LeaseSettings
    accounting: AccountingSettings
    leftover_grace: timedelta
    pod_groups: tuple[Resource, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintConfigSettings:
    """Settings of `moorage-scheduler-plugin print-config`.

    Attributes:
        caller: What kube-scheduler shows to the plugin; None without TLS.
    """

    listening: Listening
    lease: LeaseSettings
    scheduler_names: tuple[str, ...]
    caller: CallerFiles | None


def parse_settings(
    argv: Sequence[str], environ: Mapping[str, str]
) -> ServeSettings | PrintConfigSettings:
    """Settings from the command line; flags win over the environment.

    Raises:
        SystemExit: With argparse's message, on flags that make no sense.
    """
    parser = _parser(environ)
    arguments = parser.parse_args(argv)
    tls = TlsFiles(
        certificate=arguments.tls_cert_file,
        key=arguments.tls_private_key_file,
        client_ca=arguments.client_ca_file,
        client_names=frozenset(arguments.client_names),
    )
    listening = _listening(parser, parse_listening(arguments.listen_address, tls))
    pages = _listening(parser, parse_pages_address(arguments.pages_address))
    namespace, name = arguments.lease
    lease = LeaseSettings(namespace=namespace, name=name, identity=arguments.scheduler_identity)
    if arguments.command == "print-config":
        return PrintConfigSettings(
            listening=listening,
            lease=lease,
            scheduler_names=arguments.scheduler_names,
            caller=_caller(parser, arguments) if listening.tls else None,
        )
    return ServeSettings(
        kubeconfig=arguments.kubeconfig,
        log_level=arguments.log_level,
        instance=environ.get("POD_NAME") or socket.gethostname(),
        listening=listening,
        pages=pages,
        lease=lease,
        accounting=_accounting(arguments),
        leftover_grace=timedelta(seconds=arguments.leftover_grace),
        pod_groups=tuple(dict.fromkeys(arguments.pod_groups)),
    )


def _listening(parser: argparse.ArgumentParser, parsed: Listening | Problem) -> Listening:
    if isinstance(parsed, Problem):
        parser.error(f"{parsed.path}: {parsed.message}")
    return parsed


def _accounting(arguments: argparse.Namespace) -> AccountingSettings:
    return AccountingSettings(
        queue_label=arguments.queue_label,
        default_queue=arguments.default_queue,
        scheduler_names=frozenset(arguments.scheduler_names),
        non_preemptible_priority=arguments.non_preemptible_priority,
        orphan_policy=OrphanPolicy(arguments.orphan_policy),
        owner_lifetime=OwnerLifetime(arguments.owner_lifetime),
    )


def _caller(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> CallerFiles:
    files = CallerFiles(
        certificate=arguments.scheduler_cert_file,
        key=arguments.scheduler_private_key_file,
        server_ca=arguments.server_ca_file,
    )
    if not (files.certificate and files.key and files.server_ca):
        parser.error(
            "with TLS, print-config needs --scheduler-cert-file, --scheduler-private-key-file and"
            " --server-ca-file: what kube-scheduler shows, and whom it believes."
        )
    return files


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="moorage-scheduler-plugin",
        description="Judge and bind pods for the kube-scheduler beside this process.",
    )
    parser.add_argument(
        "command",
        nargs="?",
        default="serve",
        choices=("serve", "print-config"),
        help="serve (default), or print what kube-scheduler's configuration must say",
    )
    _process_arguments(parser, environ)
    _server_arguments(parser)
    _accounting_arguments(parser)
    _caller_arguments(parser)
    return parser


def _process_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    kubeconfig = environ.get("KUBECONFIG")
    parser.add_argument(
        "--kubeconfig",
        default=Path(kubeconfig) if kubeconfig else None,
        type=Path,
        metavar="FILE",
        help="default: $KUBECONFIG, else the pod's ServiceAccount",
    )
    parser.add_argument(
        "--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )
    parser.add_argument(
        "--lease",
        default=("moorage-system", "moorage-scheduler"),
        type=_lease,
        metavar="NAMESPACE/NAME",
        help="kube-scheduler's Lease (default: moorage-system/moorage-scheduler)",
    )
    parser.add_argument(
        "--scheduler-identity",
        default=socket.gethostname(),
        type=_not_empty,
        metavar="NAME",
        help="what the Lease's holder begins with, before `_`: kube-scheduler's host name, which"
        " is the pod's (default: this host's name)",
    )


def _server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        ADDRESS_FLAG,
        default="127.0.0.1:10261",
        metavar="HOST:PORT",
        help="where kube-scheduler calls: loopback, unless there is mutual TLS"
        " (default: 127.0.0.1:10261)",
    )
    parser.add_argument(
        PAGES_FLAG,
        default="127.0.0.1:10262",
        metavar="HOST:PORT",
        help="where /healthz, /readyz and /waiting/NAMESPACE/POD are read, over plain HTTP"
        " (default: 127.0.0.1:10262)",
    )
    for flag, what in (
        ("--tls-cert-file", "certificate of the server"),
        ("--tls-private-key-file", "its key"),
        ("--client-ca-file", "the authority of the certificate that kube-scheduler must show"),
    ):
        parser.add_argument(flag, default="", metavar="FILE", help=what)
    parser.add_argument(
        "--client-names",
        default=(KUBE_SCHEDULER,),
        type=_names,
        metavar="NAME[,NAME...]",
        help="whom that certificate must name, as common name, DNS name or URI; others of the same"
        f" authority are not heard (default: {KUBE_SCHEDULER})",
    )
    parser.add_argument(
        "--scheduler-name",
        dest="scheduler_names",
        default=("moorage",),
        type=_names,
        metavar="NAME[,NAME...]",
        help="the kube-scheduler's profiles: pods of other schedulers are not judged and not bound"
        " (default: moorage)",
    )


def _accounting_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queue-label", default=QUEUE_LABEL, type=_label_key, metavar="KEY")
    parser.add_argument(
        "--default-queue",
        default=NO_QUEUE,
        type=_queue,
        metavar="NAME",
        help="queue of pods for which nothing else names one (default: none)",
    )
    parser.add_argument(
        "--non-preemptible-priority",
        default=100,
        type=_priority,
        metavar="NUMBER",
        help="pods of at least this priority are non-preemptible (default: 100)",
    )
    parser.add_argument(
        "--orphan-policy",
        default=str(OrphanPolicy.OLDEST_POD),
        choices=[str(policy) for policy in OrphanPolicy],
        help="whom an allocated claim without an owner is charged to",
    )
    parser.add_argument(
        "--owner-lifetime",
        default=str(OwnerLifetime.ALLOCATION),
        choices=[str(lifetime) for lifetime in OwnerLifetime],
        help="how long an owner that was written at a binding stays",
    )
    parser.add_argument(
        "--leftover-grace",
        default=LEFTOVER_GRACE.total_seconds(),
        type=_seconds,
        metavar="SECONDS",
        help="how long an allocation that nobody uses, and pods that ended, stay on a claim"
        " (default: 120)",
    )
    parser.add_argument(
        "--pod-groups",
        default=(Resource("scheduling.run.ai", "v2alpha2", "podgroups"),),
        type=_kinds,
        metavar="KINDS",
        help="kinds of PodGroups, as plural.version.group, with commas between them; empty for"
        " none (default: podgroups.v2alpha2.scheduling.run.ai)",
    )


def _caller_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("print-config")
    for flag, what in (
        ("--scheduler-cert-file", "certificate that kube-scheduler shows"),
        ("--scheduler-private-key-file", "its key"),
        ("--server-ca-file", "the authority of the plugin's certificate"),
    ):
        group.add_argument(flag, default="", metavar="FILE", help=f"{what}; its path there")


def _not_empty(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(names):
        raise argparse.ArgumentTypeError("must not be empty")
    return names


def _lease(text: str) -> tuple[str, str]:
    namespace, _, name = text.partition("/")
    if not (re.fullmatch(_NAME, namespace) and re.fullmatch(_NAME, name)):
        raise argparse.ArgumentTypeError(f"{text!r} is no namespace/name of a Lease")
    return namespace, name


def _label_key(text: str) -> str:
    if not _LABEL_KEY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no key of a label, such as {QUEUE_LABEL}")
    return text


def _queue(text: str) -> QueueName:
    if text and not (re.fullmatch(_NAME, text) and len(text) <= 63):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a Queue")
    return QueueName(text)


def _priority(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = None
    if number is None or abs(number) > _LARGEST_PRIORITY:
        raise argparse.ArgumentTypeError(f"{text!r} is no priority that a pod can have")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds up to a day")
    return seconds


def _kinds(text: str) -> tuple[Resource, ...]:
    return tuple(_kind(part) for part in text.split(",")) if text else ()


def _kind(text: str) -> Resource:
    plural, _, rest = text.partition(".")
    version, _, group = rest.partition(".")
    is_version = re.fullmatch(r"v[0-9]+((alpha|beta)[0-9]+)?", version)
    if not (is_version and re.fullmatch(_NAME, plural) and re.fullmatch(_NAME, group)):
        example = "podgroups.v2alpha2.scheduling.run.ai"
        raise argparse.ArgumentTypeError(f"{text!r} is no plural.version.group such as {example}")
    return Resource(group, version, plural)
