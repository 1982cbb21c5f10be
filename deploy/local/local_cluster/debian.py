"""Installs the Debian packages that a cluster needs and the machine lacks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from local_cluster.errors import MachineError
from local_cluster.files import locked
from local_cluster.linux_commands import run
from local_cluster.progress import say

# Package to a program of it. What only nodes need is apart: a bare API server needs little.
NETWORK_PACKAGES: Mapping[str, str] = {
    "iproute2": "ip",
    "procps": "sysctl",
    "util-linux": "nsenter",
}
NODE_PACKAGES: Mapping[str, str] = {
    "busybox-static": "busybox",
    "conntrack": "conntrack",
    "iptables": "iptables",
    "runc": "runc",
}
UDEV_PACKAGES: Mapping[str, str] = {"udev": "udevadm"}
LOCK = Path("/run/lock/moorage-packages.lock")
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def ensure_packages(wanted: Mapping[str, str]) -> None:
    """Install what is missing, in one go; say so, since it changes the machine."""
    if not _missing(wanted):
        return
    # Apt gives up where another apt is at work, such as that of a second test worker.
    with locked(LOCK):
        if missing := _missing(wanted):
            _install(missing)


def _missing(wanted: Mapping[str, str]) -> list[str]:
    return [name for name, program in wanted.items() if find(program) is None]


def _install(missing: Sequence[str]) -> None:
    if shutil.which("apt-get") is None:
        raise MachineError(f"install {', '.join(missing)} by hand: this machine has no apt-get")
    say(f"installing Debian packages: {', '.join(missing)}")
    run("apt-get", "update", timeout_seconds=300)
    install = ("apt-get", "install", "-y", "--no-install-recommends", *missing)
    run("env", "DEBIAN_FRONTEND=noninteractive", *install, timeout_seconds=600)


def find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:{SEARCH_PATH}")


def require_root() -> None:
    if os.geteuid() != 0:
        raise MachineError("namespaces, mounts and kubelets need root: run this as root")
