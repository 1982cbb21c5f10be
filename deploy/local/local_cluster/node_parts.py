"""The parts of one node, and the script that gives the node its own view of the machine."""

from __future__ import annotations

import shlex
from pathlib import Path

from local_cluster import addresses as ports
from local_cluster import configurations
from local_cluster.blueprint import Blueprint, PlannedNode
from local_cluster.debian import SEARCH_PATH
from local_cluster.layout import OVERLAID_DIRS, PRIVATE_DIRS, RUN_DIR, NodeLayout
from local_cluster.parts import HttpProbe, PartSpec, SocketProbe, flags


def node_parts(blueprint: Blueprint, node: PlannedNode) -> tuple[PartSpec, ...]:
    return containerd(blueprint, node), kubelet(blueprint, node)


def containerd(blueprint: Blueprint, node: PlannedNode) -> PartSpec:
    config = blueprint.layout.config / f"containerd-{node.name}.toml"
    network = node.layout.private("/etc/cni") / "net.d" / "10-moorage.conflist"
    plugins = configurations.cni(blueprint.addresses.pods(node.index))
    programs = blueprint.binaries.containerd
    return PartSpec(
        name=f"containerd-{node.name}",
        argv=(str(programs / "containerd"), f"--config={config}"),
        probe=SocketProbe(configurations.CONTAINERD_SOCKET),
        wave=1,
        node=node.name,
        files={
            config: configurations.containerd(blueprint.binaries.cni),
            network: configurations.document(plugins),
        },
        # It finds the shim on PATH, and the shim finds runc there.
        env={"PATH": f"{programs}:{SEARCH_PATH}"},
    )


def kubelet(blueprint: Blueprint, node: PlannedNode) -> PartSpec:
    part, pki = f"kubelet-{node.name}", blueprint.layout.pki
    address = blueprint.addresses.node(node.index)
    path, kubeconfig = blueprint.kubeconfig(part, node.name)
    config = blueprint.layout.config / f"{part}.json"
    configuration = {
        **configurations.kubelet(address, pki, node.name),
        "cgroupRoot": f"/{blueprint.layout.cgroup}/{node.name}",
        "featureGates": dict(blueprint.settings.node_gates),
        **blueprint.settings.kubelet_overlay,
    }
    values = {
        "config": str(config),
        "kubeconfig": str(path),
        "hostname-override": node.name,
        "node-ip": str(address),
        "root-dir": blueprint.settings.kubelet_root,
    }
    return PartSpec(
        name=part,
        argv=(blueprint.kubelet, *flags(values)),
        probe=HttpProbe(f"http://{address}:{ports.KUBELET_HEALTH_PORT}/healthz"),
        wave=2,
        node=node.name,
        files={path: kubeconfig, config: configurations.document(configuration)},
    )


def udevd(node: PlannedNode) -> PartSpec:
    """One for all nodes: they share the network namespace in which it is heard."""
    return PartSpec(
        name="udevd",
        argv=("/lib/systemd/systemd-udevd",),
        probe=SocketProbe(f"{RUN_DIR}/udev/control"),
        wave=1,
        node=node.name,
    )


def setup_script(node: NodeLayout) -> str:
    """What the node's first process runs before it goes to sleep for good: the node boots.

    It starts in new mount, UTS and PID namespaces whose mounts are private, so nothing
    here is seen outside. References to other clusters' network namespaces are dropped
    first: a copied mount would keep a deleted namespace, with its veth pair, alive.
    SIGCHLD is ignored, so that orphans of containers leave no zombies.
    """
    lines = [
        "set -eu",
        "umount -R /run/netns 2>/dev/null || true",
        f"hostname {node.name}",
        f"cat /proc/sys/kernel/random/uuid > {_quoted(node.boot_id)}",
        f"mount --bind {_quoted(node.boot_id)} /proc/sys/kernel/random/boot_id",
        *(_overlay(node, target) for target in OVERLAID_DIRS),
        f"mount --bind {_quoted(node.run)} {RUN_DIR}",
        f"mount --bind {_quoted(node.udev)} {RUN_DIR}/udev",
        *(_bind(node, target) for target in PRIVATE_DIRS),
        "mount --make-rshared /",
        f"touch {_quoted(node.ready_file)}",
        "exec env --ignore-signal=CHLD sleep infinity",
    ]
    return "\n".join(lines) + "\n"


def folders(node: NodeLayout) -> tuple[Path, ...]:
    """What must exist before the script runs."""
    overlays = tuple(
        _overlay_dir(node, target) / half for target in OVERLAID_DIRS for half in ("upper", "work")
    )
    private = tuple(node.private(target) for target in PRIVATE_DIRS)
    inside_run = tuple(node.run / name for name in ("cdi", "containerd", "lock", "netns", "udev"))
    pods = node.kubelet_root / configurations.STATIC_PODS.rpartition("/")[2]
    return (*overlays, *private, *inside_run, node.udev, pods)


def _overlay_dir(node: NodeLayout, target: str) -> Path:
    return node.dir / "overlays" / target.strip("/").replace("/", "-")


def _overlay(node: NodeLayout, target: str) -> str:
    base = _overlay_dir(node, target)
    options = f"lowerdir={target},upperdir={base}/upper,workdir={base}/work"
    return f"mount -t overlay overlay -o {shlex.quote(options)} {target}"


def _bind(node: NodeLayout, target: str) -> str:
    return f"mkdir -p {target} && mount --bind {_quoted(node.private(target))} {target}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
