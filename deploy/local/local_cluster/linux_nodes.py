"""Nodes on the machine: a first process that holds the namespaces, entered by all others.

The first process is PID 1 of the node's PID namespace. When it ends the kernel kills
everything in the node, containers included, and the mounts go with the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from local_cluster import linux_cgroups, node_parts, processes
from local_cluster.blueprint import PlannedNode
from local_cluster.debian import SEARCH_PATH
from local_cluster.errors import PartError
from local_cluster.files import tail, write_atomically
from local_cluster.health import wait_until
from local_cluster.layout import Layout
from local_cluster.linux_commands import in_namespaces_of, in_network
from local_cluster.processes import Process

READY_SECONDS = 20.0
# Tells a node's record from those of parts.
FINGERPRINT = "node"
ENTERING = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")


def first_process(layout: Layout, name: str) -> Process | None:
    """The node's first process, if the node is up."""
    found = processes.load(layout.record(name))
    return found[0] if found and found[0].is_alive() else None


def ensure_node(layout: Layout, node: PlannedNode) -> Process:
    """Make the node's namespaces and mounts, unless they exist."""
    running = first_process(layout, node.name)
    if running and node.layout.ready_file.exists():
        return running
    remove_node(layout, node.name)
    return _start(layout, node)


def remove_node(layout: Layout, name: str) -> None:
    """End everything that runs in the node."""
    if running := first_process(layout, name):
        running.kill()
    layout.record(name).unlink(missing_ok=True)
    layout.node(name).ready_file.unlink(missing_ok=True)


def root_of(process: Process) -> Path:
    """The node's root folder seen from the host. Short, as UNIX socket paths must be."""
    return Path(f"/proc/{process.pid}/root")


def inside(layout: Layout, name: str, argv: Sequence[str]) -> tuple[str, ...]:
    """The command that runs `argv` in the node."""
    process = first_process(layout, name)
    if process is None:
        raise PartError(f"{name} is not up; see {layout.log(name)}")
    return in_namespaces_of(process.pid, argv)


def _start(layout: Layout, node: PlannedNode) -> Process:
    for folder in node_parts.folders(node.layout):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(node.layout.setup_script, node_parts.setup_script(node.layout))
    write_atomically(node.layout.private("/etc/cni") / "resolv.conf", "")
    linux_cgroups.create(f"{layout.cgroup}/{node.name}")
    script = ("--propagation", "private", "--", "/bin/sh", str(node.layout.setup_script))
    argv = in_network(node.network, (*ENTERING, *script))
    outer = processes.start(argv, layout.log(node.name), {"PATH": SEARCH_PATH}, layout.id)
    inner = processes.only_child(outer)
    processes.save(layout.record(node.name), inner, FINGERPRINT)
    if not wait_until(node.layout.ready_file.exists, READY_SECONDS) or not inner.is_alive():
        log = layout.log(node.name)
        raise PartError(f"{node.name} has no namespaces or mounts; see {log}\n{tail(log)}")
    return inner
