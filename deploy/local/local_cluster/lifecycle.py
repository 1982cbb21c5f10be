"""Brings a cluster up, and takes it down without a trace; both may be repeated."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

from local_cluster import (
    certificates,
    debian,
    go_toolchain,
    linux_cgroups,
    linux_limits,
    linux_mounts,
    linux_network,
    linux_nodes,
    linux_traces,
    processes,
    scheduler_rights,
)
from local_cluster.addresses import Addresses, choose_subnet
from local_cluster.authority import Authority
from local_cluster.blueprint import Blueprint
from local_cluster.bootstrap import bootstrap
from local_cluster.configurations import certificate_user, kubeconfig
from local_cluster.errors import MachineError
from local_cluster.files import locked, write_atomically
from local_cluster.layout import Layout, layout_of
from local_cluster.plan import needs_new_cluster, waves
from local_cluster.progress import say
from local_cluster.records import Record, load_record, save_record
from local_cluster.settings import ClusterSettings
from local_cluster.supervisor import END_SECONDS, Supervisor

# Two clusters that start together must not choose one subnet: this lock is the machine's.
MACHINE_LOCK = Path("/run/lock/moorage-local-cluster.lock")
KEPT_AFTER_DOWN = ("logs", "lock")


def up(settings: ClusterSettings) -> Blueprint:
    """Make the cluster what the settings say. On a healthy one this changes nothing.

    Changed settings restart the parts that they reach, found by fingerprint, a newer Kubernetes
    those of Kubernetes; an older one makes a new cluster in the same folder.
    """
    debian.require_root()
    layout = layout_of(settings.work_dir)
    linux_mounts.require_usable(layout.work_dir)
    started = time.monotonic()
    with locked(layout.lock_file):
        if reason := _reason_to_start_afresh(settings, layout):
            say(f"new cluster, since {reason}")
            _take_down(layout, END_SECONDS)
        blueprint = _prepare(settings, layout)
        changed = _start(blueprint)
    say(_summary(blueprint, changed, time.monotonic() - started))
    return blueprint


def down(work_dir: Path, *, purge: bool = False) -> None:
    """End and remove everything but the logs; `purge` removes the folder, too."""
    debian.require_root()
    layout = layout_of(work_dir)
    if not layout.work_dir.exists():
        return
    with locked(layout.lock_file):
        # Without the logs, nobody reads what a part says at its end: the API server takes longer.
        _take_down(layout, 0.0 if purge else END_SECONDS)
        if purge:
            _remove_folder(layout)


def power_off(blueprint: Blueprint, node: str) -> None:
    """End a node at once, as a power cut does; what it had in memory, `/run`, is gone.

    `up` starts it again.
    """
    with locked(blueprint.layout.lock_file):
        linux_nodes.remove_node(blueprint.layout, node)
        shutil.rmtree(blueprint.layout.node(node).run)


def _reason_to_start_afresh(settings: ClusterSettings, layout: Layout) -> str | None:
    """None when what is there, if anything, can become what is asked for."""
    before = load_record(layout)
    if before is None:
        return None
    if needs_new_cluster(before.settings, settings):
        return f"this one runs Kubernetes {before.settings.kubernetes} in another network"
    if not linux_network.exists(layout):
        # Its processes, if any live, are in a namespace that has no name any more.
        return "the network of this one is gone"
    return None


def _prepare(settings: ClusterSettings, layout: Layout) -> Blueprint:
    debian.ensure_packages(debian.NETWORK_PACKAGES)
    if settings.nodes:
        debian.ensure_packages(debian.NODE_PACKAGES)
        linux_limits.ensure_limits()
    if settings.udevd:
        debian.ensure_packages(debian.UDEV_PACKAGES)
    binaries = go_toolchain.build_all(
        settings.kubernetes, kubelets=settings.kubelet_version, with_nodes=settings.nodes > 0
    )
    addresses = _ensure_network(layout)
    save_record(layout, Record(settings, addresses.subnet, binaries))
    blueprint = Blueprint(settings, layout, addresses, binaries)
    _ensure_node_networks(blueprint)
    _ensure_trust(blueprint)
    return blueprint


def _ensure_node_networks(blueprint: Blueprint) -> None:
    layout, addresses = blueprint.layout, blueprint.addresses
    if not blueprint.settings.own_networks:
        linux_network.set_node_addresses(layout, addresses, blueprint.settings.nodes)
        return
    for node in blueprint.nodes:
        linux_network.ensure_node_network(layout, addresses, node.name, node.index)


def _ensure_network(layout: Layout) -> Addresses:
    with locked(MACHINE_LOCK):
        before = load_record(layout)
        if before and linux_network.exists(layout):
            return Addresses(before.subnet)
        linux_network.remove(layout)
        addresses = Addresses(choose_subnet(layout.id, linux_network.taken_subnets()))
        linux_network.create(layout, addresses)
        return addresses


def _ensure_trust(blueprint: Blueprint) -> None:
    layout = blueprint.layout
    authority = Authority(layout.pki)
    authority.issue_service_account_key()
    names = tuple(node.name for node in blueprint.nodes)
    for spec in certificates.all_specs(blueprint.addresses, names):
        authority.issue(spec)
    user = certificate_user(layout.pki, certificates.ADMIN.name)
    ca = authority.certificate_file
    write_atomically(layout.kubeconfig, kubeconfig(blueprint.addresses.server, ca, user))


def _start(blueprint: Blueprint) -> tuple[str, ...]:
    supervisor = Supervisor(blueprint)
    _remove_unplanned(blueprint, supervisor)
    for node in blueprint.nodes:
        linux_nodes.ensure_node(blueprint.layout, node)
    started: list[str] = []
    for wave in waves(supervisor.parts.values()):
        if any(part.name == scheduler_rights.NAME for part in wave):
            _grant_before_it_starts(blueprint, supervisor)
        started += supervisor.ensure(wave)
    bootstrap(blueprint, changed=bool(started))
    return tuple(started)


def _grant_before_it_starts(blueprint: Blueprint, supervisor: Supervisor) -> None:
    if supervisor.process(scheduler_rights.NAME) is None:
        scheduler_rights.grant(blueprint)


def _remove_unplanned(blueprint: Blueprint, supervisor: Supervisor) -> None:
    """Parts and nodes that the settings no longer ask for."""
    nodes = {node.name for node in blueprint.nodes}
    for record in sorted(blueprint.layout.records.glob("*.json")):
        name = record.stem
        found = processes.load(record)
        if name in supervisor.parts or name in nodes or found is None:
            continue
        if found[1] == linux_nodes.FINGERPRINT:
            linux_nodes.remove_node(blueprint.layout, name)
        elif found[1] != processes.COMPONENT:
            supervisor.end(name)


def _take_down(layout: Layout, seconds: float) -> None:
    """Works on what is found, not on what was planned: half a cluster goes the same way.

    Nodes go first and at once: SIGKILL of their first process ends all containers, and
    kubelets cannot start anew what is being ended.
    """
    for record in sorted(layout.records.glob("*.json")):
        found = processes.load(record)
        if found and found[1] == linux_nodes.FINGERPRINT:
            linux_nodes.remove_node(layout, record.stem)
    processes.end_all(linux_traces.processes_of(layout), seconds)
    with locked(MACHINE_LOCK):
        linux_network.remove(layout)
    linux_cgroups.remove(layout.cgroup)
    linux_mounts.unmount_below(layout.work_dir)
    if left := linux_traces.traces_of(layout):
        raise MachineError(f"still there after down: {', '.join(left)}")
    _remove_files(layout)


def _remove_folder(layout: Layout) -> None:
    """The lock goes last: whoever waits for it finds an empty folder and starts afresh."""
    shutil.rmtree(layout.logs, ignore_errors=True)
    layout.lock_file.unlink()
    with suppress(OSError):
        layout.work_dir.rmdir()


def _remove_files(layout: Layout) -> None:
    for path in layout.work_dir.iterdir():
        if path.name in KEPT_AFTER_DOWN:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _summary(blueprint: Blueprint, changed: tuple[str, ...], seconds: float) -> str:
    what = f"started {', '.join(changed)}" if changed else "nothing to do"
    where = f"KUBECONFIG={blueprint.layout.kubeconfig}"
    return f"up after {seconds:.1f} s: {what}. {where}"
