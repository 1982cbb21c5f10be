"""Settings of `moorage-scheduler-plugin`, as its commands are told them; see `arguments`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from kube.api import ObjectPath
from kube.kinds import Resource
from scheduler_plugin.extender.kube_scheduler_lease import LeaseSettings
from scheduler_plugin.extender.listening import Listening
from scheduler_plugin.extender.scheduler_configuration import PrintConfigSettings
from scheduler_plugin.extender.static_pods import Sidecar
from scheduler_plugin.objects.names import AccountingSettings, ReclaimPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Settings of `moorage-scheduler-plugin serve`.

    Attributes:
        kubeconfig: None for the ServiceAccount of the pod.
        log_format: `text` or `json`.
        tracing_endpoint: Where traces are sent; "" for nowhere.
        instance: This process's name in Events.
        listening: Where kube-scheduler calls.
        pages: Where programs and probes read.
        dashboard: Where the dashboard asks; None for nowhere.
        dashboard_secret: With the certificates for that.
        leftover_grace: How long what refused bindings leave on claims stays.
        stale_gang_grace: How long a PodGroup may have fewer pods than it needs; None for ever.
        reclaim: Whether what queues are guaranteed is taken back.
        evictions_per_minute: How many pods may be evicted for one queue within a minute.
        pod_groups: The kinds whose objects say which queue the pods of a group have.
    """

    kubeconfig: Path | None
    log_level: str
    log_format: str
    tracing_endpoint: str
    instance: str
    listening: Listening
    pages: Listening
    dashboard: Listening | None
    dashboard_secret: ObjectPath
    lease: LeaseSettings
    accounting: AccountingSettings
    leftover_grace: timedelta
    pod_groups: tuple[Resource, ...]
    stale_gang_grace: timedelta | None
    reclaim: ReclaimPolicy
    evictions_per_minute: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintStaticPodSettings:
    """Settings of `moorage-scheduler-plugin print-static-pod`.

    Attributes:
        manifest: Of the static pod as it is.
        plain_http: Whether kube-scheduler asks without TLS.
    """

    manifest: Path
    sidecar: Sidecar
    plain_http: bool = False

    @property
    def scheduler_configuration(self) -> Path:
        """kube-scheduler's, which must ask as the plugin listens."""
        return Path(self.sidecar.folder, "scheduler.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCertificatesSettings:
    """Settings of `moorage-scheduler-plugin write-certificates`."""

    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """Settings of `moorage-scheduler-plugin check`.

    Attributes:
        kubeconfig: See `ServeSettings`; outside of a pod the user's own.
        namespace: Of the release.
        account: The plugin's, as the API server names it.
        scheduler_config: kube-scheduler's configuration; None for that of the release.
        wait: How many seconds it is looked again while something is wrong.
        as_json: Whether programs read what is printed.
        expected: What kube-scheduler's configuration must say.
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
        kubeconfig: See `ServeSettings`.
        remedy: What is printed last where a pod uses a device.
    """

    kubeconfig: Path | None
    log_level: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveSettings:
    """Settings of `moorage-scheduler-plugin leave`.

    Attributes:
        kubeconfig: See `ServeSettings`.
        purge: Whether the definitions of Moorage's kinds go, and with them all their objects.
    """

    kubeconfig: Path | None
    log_level: str
    purge: bool
