"""The webhook beside the scheduler plugin, for stories about who asks for devices how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from local_cluster.api import Cluster
from tests.e2e.webhook.installation import WebhookProcess, registered

MANAGED = "moorage.dev/managed"
GATE = "moorage.dev/quota"


@contextmanager
def webhook(cluster: Cluster, *flags: str) -> Iterator[WebhookProcess]:
    """The API server asks a process with these flags for as long as this lasts."""
    process = WebhookProcess(cluster)
    process.start(*flags)
    try:
        process.wait_ready()
        with registered(cluster, process):
            yield process
    finally:
        process.kill()


@contextmanager
def other_flags(process: WebhookProcess, *flags: str, usual: Sequence[str] = ()) -> Iterator[None]:
    """It runs with other flags, and with its usual ones afterwards."""
    _restart(process, *flags)
    try:
        yield
    finally:
        _restart(process, *usual)


def _restart(process: WebhookProcess, *flags: str) -> None:
    process.kill()
    process.start(*flags)
    process.wait_ready()
