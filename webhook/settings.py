"""Settings of `moorage-webhook`, as its command is told them; see `arguments`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kube.api import TlsFiles
from scheduler_plugin.api import AccountingSettings
from webhook.certificates.rotation import OwnCa
from webhook.rules.surroundings import PodSettings


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
