"""Everything that decides what a cluster's parts look like, in one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from local_cluster.addresses import Addresses
from local_cluster.configurations import certificate_user, kubeconfig
from local_cluster.layout import Layout, NodeLayout
from local_cluster.programs import Binaries
from local_cluster.settings import ClusterSettings


@dataclass(frozen=True)
class PlannedNode:
    """One real node: its place in the cluster and on the machine."""

    name: str
    index: int
    layout: NodeLayout
    network: str
    """The network namespace that it is in."""


@dataclass(frozen=True)
class Blueprint:
    """The four things that all part builders read."""

    settings: ClusterSettings
    layout: Layout
    addresses: Addresses
    binaries: Binaries

    @property
    def nodes(self) -> tuple[PlannedNode, ...]:
        names = (f"node-{chr(ord('a') + index)}" for index in range(self.settings.nodes))
        return tuple(
            PlannedNode(name, index, self.layout.node(name), self._network(name))
            for index, name in enumerate(names)
        )

    def _network(self, node: str) -> str:
        own = self.settings.own_networks
        return self.layout.node_network(node) if own else self.layout.network_namespace

    def kubernetes(self, program: str) -> str:
        return str(self.binaries.kubernetes / program)

    @property
    def kubelet(self) -> str:
        return str(self.binaries.kubelets / "kubelet")

    def kubeconfig(self, name: str, certificate: str) -> tuple[Path, str]:
        """Path and content of the kubeconfig of one part."""
        user = certificate_user(self.layout.pki, certificate)
        content = kubeconfig(self.addresses.server, self.layout.pki / "ca.crt", user)
        return self.layout.config / f"{name}.kubeconfig", content
