"""Where everything of one cluster lies, and what it is called on the machine.

All names derive from the work folder's path: clusters in different folders share none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

# What a node has for itself: where the programs look for it, and the folder behind it.
PRIVATE_DIRS = {
    "/var/lib/kubelet": "kubelet",
    "/var/lib/containerd": "containerd",
    "/var/lib/cni": "cni-state",
    "/var/lib/akri": "akri",
    "/var/lib/moorage": "moorage",
    "/var/log/pods": "pod-logs",
    "/var/log/containers": "container-logs",
    "/etc/cni": "cni-config",
    "/etc/cdi": "cdi",
}
# Anything else that is written below these lands in the node's folder, not on the host.
OVERLAID_DIRS = ("/etc", "/var/lib", "/var/log", "/opt")
RUN_DIR = "/run"


@dataclass(frozen=True)
class NodeLayout:
    """The folders of one node, seen from the host."""

    name: str
    dir: Path

    @property
    def kubelet_root(self) -> Path:
        return self.dir / PRIVATE_DIRS["/var/lib/kubelet"]

    @property
    def run(self) -> Path:
        return self.dir / "run"

    @property
    def udev(self) -> Path:
        """One for all nodes of a cluster, as they are one network namespace to udevd."""
        return self.dir.parent.parent / "udev"

    @property
    def boot_id(self) -> Path:
        """What identifies this boot of the node."""
        return self.dir / "boot_id"

    @property
    def ready_file(self) -> Path:
        """Exists once the node's mounts are in place."""
        return self.dir / "ready"

    @property
    def setup_script(self) -> Path:
        return self.dir / "setup.sh"

    def private(self, inside: str) -> Path:
        """The host's path of a folder that the node has for itself."""
        return self.dir / PRIVATE_DIRS[inside]


@dataclass(frozen=True)
class Layout:
    """The folders and names of one cluster."""

    work_dir: Path

    @property
    def id(self) -> str:
        return hashlib.sha256(str(self.work_dir).encode()).hexdigest()[:8]

    @property
    def network_namespace(self) -> str:
        return f"moorage-{self.id}"

    def node_network(self, node: str) -> str:
        """The network namespace of a node that has one of its own."""
        return f"{self.network_namespace}-{node}"

    @property
    def host_interface(self) -> str:
        """At most 15 characters: the kernel's limit."""
        return f"mrg-{self.id}"

    @property
    def cgroup(self) -> str:
        return f"moorage-{self.id}"

    @property
    def logs(self) -> Path:
        return self.work_dir / "logs"

    @property
    def pki(self) -> Path:
        return self.work_dir / "pki"

    @property
    def config(self) -> Path:
        return self.work_dir / "config"

    @property
    def records(self) -> Path:
        """One file for each process that was started: who it is."""
        return self.work_dir / "processes"

    @property
    def etcd_data(self) -> Path:
        return self.work_dir / "etcd"

    @property
    def images(self) -> Path:
        return self.work_dir / "images"

    @property
    def kubeconfig(self) -> Path:
        return self.work_dir / "kubeconfig"

    @property
    def state_file(self) -> Path:
        return self.work_dir / "state.json"

    @property
    def lock_file(self) -> Path:
        return self.work_dir / "lock"

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def record(self, part: str) -> Path:
        return self.records / f"{part}.json"

    def node(self, name: str) -> NodeLayout:
        return NodeLayout(name, self.work_dir / "nodes" / name)


def layout_of(work_dir: Path) -> Layout:
    """Resolve first, so that two spellings of one folder are one cluster."""
    return Layout(work_dir.resolve())
