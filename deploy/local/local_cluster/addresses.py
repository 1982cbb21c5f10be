"""Which addresses a cluster uses: a small subnet between it and the host, and its inside.

Only the subnet of the veth pair must differ between clusters. Services and pods live
inside the cluster's network namespace and may look the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from local_cluster.errors import MachineError

# RFC 2544's range for benchmarks of network devices: no site routes it.
POOL = IPv4Network("198.18.0.0/15")
SUBNET_PREFIX = 27
SERVICES = IPv4Network("10.96.0.0/16")
PODS = IPv4Network("10.244.0.0/16")

APISERVER_PORT = 6443
ETCD_PORT = 2379
SCHEDULER_PORT = 10259
MOORAGE_SCHEDULER_PORT = 10260
CONTROLLER_MANAGER_PORT = 10257
KUBE_PROXY_HEALTH_PORT = 10256
KUBELET_PORT = 10250
KUBELET_HEALTH_PORT = 10248


@dataclass(frozen=True)
class Addresses:
    """The addresses of one cluster; `subnet` decides all of them."""

    subnet: IPv4Network

    @property
    def host(self) -> IPv4Address:
        """The host's end: webhooks and extenders of tests listen here."""
        return self.subnet[1]

    @property
    def control_plane(self) -> IPv4Address:
        return self.subnet[2]

    def node(self, index: int) -> IPv4Address:
        """Each kubelet has an address, so that all use the usual ports."""
        return self.subnet[3 + index]

    def pods(self, index: int) -> IPv4Network:
        return list(PODS.subnets(new_prefix=24))[index + 1]

    @property
    def kubernetes_service(self) -> IPv4Address:
        return SERVICES[1]

    @property
    def server(self) -> str:
        return f"https://{self.control_plane}:{APISERVER_PORT}"


def choose_subnet(cluster_id: str, taken: Iterable[IPv4Network]) -> IPv4Network:
    """The first free subnet, counted from a place that depends on the cluster.

    Starting at different places keeps one cluster's address stable while others come and go.
    """
    used = tuple(taken)
    size = 2 ** (32 - SUBNET_PREFIX)
    count = POOL.num_addresses // size
    first = int(cluster_id, 16) % count
    for offset in range(count):
        index = (first + offset) % count
        subnet = IPv4Network((int(POOL.network_address) + index * size, SUBNET_PREFIX))
        if not any(subnet.overlaps(other) for other in used):
            return subnet
    raise MachineError(f"no free /{SUBNET_PREFIX} is left in {POOL}")
