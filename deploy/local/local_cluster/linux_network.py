"""The cluster's network namespace, the veth pair that joins it with the host, and its nodes'.

Everything that a cluster does to the network (kube-proxy's rules, CNI's interfaces and
routes) happens inside the namespace and ends with it.
"""

from __future__ import annotations

import json
import re
from ipaddress import IPv4Network
from pathlib import Path

from local_cluster import linux_mounts
from local_cluster.addresses import Addresses
from local_cluster.layout import Layout
from local_cluster.linux_commands import attempt, in_network, run

INSIDE = "eth0"
NAMESPACES = Path("/run/netns")


def namespace_file(layout: Layout) -> Path:
    return NAMESPACES / layout.network_namespace


def namespace_files(layout: Layout) -> tuple[Path, ...]:
    """Those that are there: the cluster's, and those of nodes that have one of their own."""
    return tuple(NAMESPACES.glob(f"{layout.network_namespace}*"))


def exists(layout: Layout) -> bool:
    """True once `create` went through: the link is its last step."""
    shown = attempt("ip", "-brief", "link", "show", layout.host_interface)
    return namespace_file(layout).exists() and shown.returncode == 0 and " UP " in shown.stdout


def taken_subnets() -> tuple[IPv4Network, ...]:
    """Everything that the host has a route to, other clusters included."""
    routes = json.loads(run("ip", "-json", "-4", "route", "show", "table", "all") or "[]")
    destinations = [str(route["dst"]) for route in routes]
    return tuple(
        IPv4Network(destination, strict=False)
        for destination in destinations
        if re.match(r"\d", destination)
    )


def create(layout: Layout, addresses: Addresses) -> None:
    """Make namespace, veth pair and addresses. Call under the machine's lock."""
    run("ip", "netns", "add", layout.network_namespace)
    peer = ("peer", "name", INSIDE, "netns", layout.network_namespace)
    run("ip", "link", "add", layout.host_interface, "type", "veth", *peer)
    _inside(layout, "ip", "link", "set", "lo", "up")
    _inside(layout, "ip", "link", "set", INSIDE, "up")
    _add_address(layout, addresses, str(addresses.control_plane))
    _inside(layout, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
    run("ip", "address", "add", _with_prefix(addresses, str(addresses.host)), "dev",
        layout.host_interface)  # fmt: skip
    run("ip", "link", "set", layout.host_interface, "up")
    # Not to reach anything: programs that look for "the" address look for a default route.
    _inside(layout, "ip", "route", "add", "default", "via", str(addresses.host))


def set_node_addresses(layout: Layout, addresses: Addresses, nodes: int) -> None:
    """Each node's own address; those that exist are left alone."""
    for index in range(nodes):
        _add_address(layout, addresses, str(addresses.node(index)))


def ensure_node_network(layout: Layout, addresses: Addresses, node: str, index: int) -> None:
    """A namespace of the node's own. The cluster's is its router, and answers for it."""
    own, link, address = layout.node_network(node), f"to-{node}", str(addresses.node(index))
    if (NAMESPACES / own).exists():
        return
    run("ip", "netns", "add", own)
    peer = ("peer", "name", INSIDE, "netns", own)
    _inside(layout, "ip", "link", "add", link, "type", "veth", *peer)
    for argv in (
        ("ip", "link", "set", "lo", "up"),
        ("ip", "link", "set", INSIDE, "up"),
        ("ip", "address", "add", address, "dev", INSIDE),
        ("ip", "route", "add", str(addresses.control_plane), "dev", INSIDE),
        ("ip", "route", "add", "default", "via", str(addresses.control_plane)),
        ("sysctl", "-q", "-w", "net.ipv4.ip_forward=1"),
    ):
        run(*in_network(own, argv))
    _inside(layout, "ip", "link", "set", link, "up")
    _inside(layout, "ip", "route", "add", address, "dev", link)
    _inside(layout, "ip", "route", "add", str(addresses.pods(index)), "via", address)
    _inside(layout, "sysctl", "-q", "-w", f"net.ipv4.conf.{INSIDE}.proxy_arp=1")


def remove(layout: Layout) -> None:
    """Delete the veth pair first: a namespace that someone still holds would keep it alive.

    Call under the machine's lock, since the last cluster takes the folder's mount away, too.
    """
    attempt("ip", "link", "delete", layout.host_interface)
    for file in namespace_files(layout):
        run("ip", "netns", "delete", file.name)
    if linux_mounts.mounts_below(NAMESPACES) and not any(NAMESPACES.iterdir()):
        linux_mounts.unmount_below(NAMESPACES)
        NAMESPACES.rmdir()


def _inside(layout: Layout, *argv: str) -> None:
    run(*in_network(layout.network_namespace, argv))


def _add_address(layout: Layout, addresses: Addresses, address: str) -> None:
    prefixed = _with_prefix(addresses, address)
    _inside(layout, "ip", "address", "replace", prefixed, "dev", INSIDE)


def _with_prefix(addresses: Addresses, address: str) -> str:
    return f"{address}/{addresses.subnet.prefixlen}"
