"""Finds what a cluster has on the machine; after `down` that must be nothing."""

from __future__ import annotations

import os

from local_cluster import linux_cgroups, linux_mounts, linux_network, processes
from local_cluster.layout import Layout
from local_cluster.linux_commands import attempt
from local_cluster.processes import Process


def processes_of(layout: Layout) -> tuple[Process, ...]:
    """Whatever carries the cluster's mark or uses its network, except who asks."""
    found = {
        *processes.marked(layout.id),
        *(one for file in linux_network.namespace_files(layout) for one in processes.inside(file)),
    }
    asking = {os.getpid(), os.getppid()}
    return tuple(process for process in found if process.pid not in asking)


def traces_of(layout: Layout) -> tuple[str, ...]:
    """One entry for each mount, process, interface, namespace and cgroup."""
    interface = attempt("ip", "link", "show", layout.host_interface)
    return (
        *(f"mount {target}" for target in linux_mounts.mounts_below(layout.work_dir)),
        *(f"process {process.pid}" for process in processes_of(layout)),
        *(f"cgroup {folder}" for folder in linux_cgroups.folders(layout.cgroup)),
        *((f"interface {layout.host_interface}",) if interface.returncode == 0 else ()),
        *(f"network namespace {file}" for file in linux_network.namespace_files(layout)),
    )
