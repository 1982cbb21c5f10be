"""Settings of the commands of `moorage-scheduler-plugin`; `arguments` parses them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scheduler_plugin.extender.scheduler_configuration import PrintConfigSettings
from scheduler_plugin.extender.static_pods import Sidecar


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintStaticPodSettings:
    """Settings of `moorage-scheduler-plugin print-static-pod`.

    Attributes:
        manifest: The manifest of the present static pod.
        plain_http: Whether kube-scheduler calls without TLS.
    """

    manifest: Path
    sidecar: Sidecar
    plain_http: bool = False

    @property
    def scheduler_configuration(self) -> Path:
        """kube-scheduler's configuration, which must call as the plugin listens."""
        return Path(self.sidecar.folder, "scheduler.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCertificatesSettings:
    """Settings of `moorage-scheduler-plugin write-certificates`."""

    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """Settings of `moorage-scheduler-plugin check`.

    Attributes:
        kubeconfig: None for the ServiceAccount of the pod; outside of a pod the user's own.
        namespace: The namespace of the release.
        account: The user name of the plugin at the API server.
        scheduler_config: kube-scheduler's configuration; None for that of the release.
        wait: For how many seconds the check is repeated while something is wrong.
        as_json: Whether to print JSON for programs.
        expected: The configuration that kube-scheduler needs.
    """

    kubeconfig: Path | None
    log_level: str
    namespace: str
    account: str
    scheduler_config: Path | None
    wait: float
    as_json: bool
    expected: PrintConfigSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class InUseSettings:
    """Settings of `moorage-scheduler-plugin in-use`.

    Attributes:
        kubeconfig: None for the ServiceAccount of the pod.
        remedy: The text to print last if a pod uses a device, or a broker runs.
        brokers: Whether brokers are looked for.
    """

    kubeconfig: Path | None
    log_level: str
    remedy: str
    brokers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveSettings:
    """Settings of `moorage-scheduler-plugin leave`.

    Attributes:
        kubeconfig: None for the ServiceAccount of the pod.
        purge: Whether to delete the definitions of Moorage's kinds, and so all their objects.
    """

    kubeconfig: Path | None
    log_level: str
    purge: bool
