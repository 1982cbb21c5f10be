"""Writes the certificates of the plugin and kube-scheduler on a control plane."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from kube.wall_clock import wall_clock
from scheduler_plugin.extender.certificate_files import (
    AUTHORITY,
    CALLER,
    CALLER_KEY,
    KEYS,
    SERVER,
    SERVER_KEY,
)
from scheduler_plugin.extender.listening import KUBE_SCHEDULER
from scheduler_plugin.extender.mutual_certificates import Names, mutual_certificates

LIFE = timedelta(days=3650)
"""The life of kubeadm's authorities: when it ends, the cluster schedules no pod. Both keys stay on
one machine, and only root can read them."""

NAMES = Names(
    authority="moorage-scheduler-plugin-ca",
    server="moorage-scheduler-plugin",
    host="127.0.0.1",
    client=KUBE_SCHEDULER,
)


def write_certificates(folder: Path) -> None:
    """Write all five files into a folder that has none of them.

    Raises:
        FileExistsError: One of the files exists: kube-scheduler may use it.
        OSError: The folder cannot be written.
    """
    files = _files()
    for name in files:
        if (folder / name).exists():
            raise FileExistsError(f"{folder / name} exists already: delete it to renew it")
    for name, content in files.items():
        mode = 0o600 if name in KEYS else 0o644
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "wb") as file:
            file.write(content)


def _files() -> Mapping[str, bytes]:
    made = mutual_certificates(NAMES, LIFE, wall_clock())
    return {
        AUTHORITY: made.authority,
        SERVER: made.server,
        SERVER_KEY: made.server_key,
        CALLER: made.client,
        CALLER_KEY: made.client_key,
    }
