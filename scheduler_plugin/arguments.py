"""The command line of `moorage-scheduler-plugin`. Only this module reads flags and environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from kube.processes.api import (
    Config,
    Kubeconfig,
    LogLevel,
    commands,
    not_empty,
    parsed,
    refuse,
    settings_in,
    settings_of,
)
from scheduler_plugin import uninstall_arguments
from scheduler_plugin.accounting_arguments import (
    SCHEDULERS,
    SchedulerName,
)
from scheduler_plugin.check_arguments import (
    Account,
    Namespace,
    Output,
    ReleaseLease,
    SchedulerConfig,
)
from scheduler_plugin.common_arguments import (
    ADDRESS,
    CLUSTERS_LEASE,
    CLUSTERS_SCHEDULERS,
    FOLDER,
    LEASE,
    NAMES,
    PAGES_ADDRESS,
    Certificates,
    ClientCaFile,
    ClientNames,
    Lease,
    ListenAddress,
    PagesAddress,
    PlainHttp,
    StaticPodFolder,
    TlsCertFile,
    TlsPrivateKeyFile,
    Wait,
    file_option,
    safe,
)
from scheduler_plugin.dashboard_settings import DashboardSettings
from scheduler_plugin.extender.certificate_files import CertificateFiles
from scheduler_plugin.extender.listening import (
    PAGES_FLAG,
    TlsFiles,
    parse_listening,
    parse_pages_address,
)
from scheduler_plugin.extender.scheduler_configuration import CallerFiles, PrintConfigSettings
from scheduler_plugin.extender.static_pods import Sidecar
from scheduler_plugin.serve_settings import ServeSettings
from scheduler_plugin.settings import (
    CheckSettings,
    InUseSettings,
    LeaveSettings,
    PrintStaticPodSettings,
    WriteCertificatesSettings,
)

DEFAULT_COMMAND = "serve"

Settings = (
    ServeSettings
    | PrintConfigSettings
    | PrintStaticPodSettings
    | WriteCertificatesSettings
    | CheckSettings
    | InUseSettings
    | LeaveSettings
    | DashboardSettings
)

app = commands(
    "moorage-scheduler-plugin", "Judge and bind pods for the kube-scheduler beside this process."
)


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line, the environment and a file; `serve` is the default command.

    Raises:
        SystemExit: With a sentence, if flags are not valid.
    """
    flags_only = not argv or (argv[0].startswith("-") and argv[0] != "--help")
    with_command = [DEFAULT_COMMAND, *argv] if flags_only else argv
    settings: Settings = settings_of(app, with_command, environ)
    return settings


app.command("serve", help="Answer kube-scheduler until a signal; this is the default command.")(
    ServeSettings
)


@app.command("print-config", help="Print the configuration that kube-scheduler needs.")
def print_config(
    lease: Lease = LEASE,
    listen_address: ListenAddress = ADDRESS,
    tls_cert_file: TlsCertFile = "",
    tls_private_key_file: TlsPrivateKeyFile = "",
    client_ca_file: ClientCaFile = "",
    client_names: ClientNames = NAMES,
    scheduler_name: SchedulerName = SCHEDULERS,
    scheduler_cert_file: Annotated[
        str,
        file_option("Set the path of kube-scheduler's certificate on its host (default: no TLS)"),
    ] = "",
    scheduler_private_key_file: Annotated[
        str,
        file_option("Set the path of kube-scheduler's private key on its host (default: no TLS)"),
    ] = "",
    server_ca_file: Annotated[
        str,
        file_option(
            "Set the path of the authority of the plugin's certificate on kube-scheduler's host"
            " (default: no TLS)"
        ),
    ] = "",
    scheduler_kubeconfig: Annotated[
        str,
        file_option(
            "Set the path of kube-scheduler's kubeconfig on its host (default: the ServiceAccount"
            " of its pod)"
        ),
    ] = "",
    certificates: Certificates = "",
    config: Config = "",
) -> PrintConfigSettings:
    tls = TlsFiles(
        certificate=tls_cert_file,
        key=tls_private_key_file,
        client_ca=client_ca_file,
        client_names=frozenset(client_names),
    )
    caller = CallerFiles(
        certificate=scheduler_cert_file, key=scheduler_private_key_file, server_ca=server_ca_file
    )
    if certificates:
        found = CertificateFiles(certificates)
        tls, caller = found.server, found.caller
    listening = safe(parse_listening(listen_address, tls))
    if listening.tls and not (caller.certificate and caller.key and caller.server_ca):
        raise refuse(
            "with TLS, print-config needs --scheduler-cert-file, --scheduler-private-key-file and"
            " --server-ca-file: kube-scheduler's certificate and key, and the authority that it"
            " trusts."
        )
    return PrintConfigSettings(
        listening=listening,
        lease=(lease[0], lease[1]),
        scheduler_names=scheduler_name,
        caller=caller if listening.tls else None,
        scheduler_kubeconfig=scheduler_kubeconfig,
    )


@app.command(
    "print-static-pod", help="Print the static pod of a kube-scheduler with the plugin beside it."
)
def print_static_pod(
    image: Annotated[
        str, parsed(not_empty, metavar="IMAGE", help_="Set Moorage's image, which is required.")
    ],
    manifest: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Read the present static pod of kube-scheduler from this file.",
        ),
    ] = Path("/etc/kubernetes/manifests/kube-scheduler.yaml"),
    folder: StaticPodFolder = FOLDER,
    lease: Lease = CLUSTERS_LEASE,
    scheduler_name: SchedulerName = CLUSTERS_SCHEDULERS,
    plugin_config: Annotated[
        str,
        file_option(
            "Set the path of the plugin's file of settings on the host, as --config of `serve`"
            " (default: none)"
        ),
    ] = "",
    pages_address: PagesAddress = "",
    plain_http: PlainHttp = False,
    config: Config = "",
) -> PrintStaticPodSettings:
    address = pages_address or _pages_address_in(plugin_config) or PAGES_ADDRESS
    pages = safe(parse_pages_address(address))
    if not pages.port:
        raise refuse(f"{PAGES_FLAG}: {address} has no port, and probes need one.")
    # Written as flags, so that probes and plugin agree when the file changes.
    flags = [
        f"--lease={lease[0]}/{lease[1]}",
        f"--scheduler-name={','.join(scheduler_name)}",
        f"{PAGES_FLAG}={address}",
        *([] if plain_http else CertificateFiles(folder).serve_flags),
        *([f"--config={plugin_config}"] if plugin_config else []),
    ]
    sidecar = Sidecar(image=image, folder=folder, flags=flags, pages=pages)
    return PrintStaticPodSettings(manifest=manifest, sidecar=sidecar, plain_http=plain_http)


def _pages_address_in(file: str) -> str:
    """The pages address in a file of settings; "" if the file or the entry is absent."""
    found = settings_in(file) if file and Path(file).is_file() else {}
    return str(found.get(PAGES_FLAG.removeprefix("--"), ""))


@app.command(
    "write-certificates",
    help="Write the certificates of kube-scheduler and of its plugin, on a control plane.",
)
def write_certificates(
    folder: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Write the files into this folder of the host.",
        ),
    ] = Path(FOLDER),
    config: Config = "",
) -> WriteCertificatesSettings:
    return WriteCertificatesSettings(folder=folder)


@app.command(
    help="Check an installation, and print what is wrong and how to repair it; change nothing."
)
def check(
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "WARNING",
    namespace: Namespace = LEASE[0],
    lease: ReleaseLease = None,
    account: Account = "",
    scheduler_config: SchedulerConfig = None,
    listen_address: ListenAddress = ADDRESS,
    scheduler_name: SchedulerName = SCHEDULERS,
    certificates: Certificates = "",
    wait: Wait = 0.0,
    output: Output = "text",
    config: Config = "",
) -> CheckSettings:
    elected = (lease[0], lease[1]) if lease else (namespace, LEASE[1])
    expected = print_config(
        lease=elected,
        listen_address=listen_address,
        scheduler_name=scheduler_name,
        certificates=certificates,
    )
    return CheckSettings(
        kubeconfig=kubeconfig,
        log_level=log_level,
        namespace=namespace,
        account=account or f"system:serviceaccount:{namespace}:scheduler-plugin",
        scheduler_config=scheduler_config,
        wait=wait,
        as_json=output == "json",
        expected=expected,
    )


app.command("dashboard", help="Serve the dashboard until a signal. It changes nothing.")(
    DashboardSettings
)
app.command("in-use", help=uninstall_arguments.IN_USE)(uninstall_arguments.in_use)
app.command(help=uninstall_arguments.LEAVE)(uninstall_arguments.leave)
