"""Which certificates a cluster needs: who is named, for what, and for which addresses."""

from __future__ import annotations

from dataclasses import dataclass

from local_cluster.addresses import Addresses


@dataclass(frozen=True)
class CertificateSpec:
    """One certificate signed by the cluster's CA, good for client and server use."""

    name: str
    """File name without suffix."""
    common_name: str
    organization: str | None = None
    hosts: tuple[str, ...] = ()
    """DNS names and addresses."""


ADMIN = CertificateSpec("admin", "kubernetes-admin", "system:masters")
APISERVER_CLIENT = CertificateSpec("apiserver-client", "kube-apiserver-client", "system:masters")
FRONT_PROXY = CertificateSpec("front-proxy", "front-proxy-client")
MOORAGE_SCHEDULER = CertificateSpec(
    "kube-scheduler-moorage", "system:serviceaccount:moorage-system:scheduler"
)
"""The second scheduler has the name of its account in a pod: policies tell the two apart."""
COMPONENTS = (
    *(
        CertificateSpec(name, f"system:{name}")
        for name in ("kube-controller-manager", "kube-scheduler", "kube-proxy")
    ),
    MOORAGE_SCHEDULER,
)


def apiserver(addresses: Addresses) -> CertificateSpec:
    names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    ]
    hosts = (addresses.control_plane, addresses.kubernetes_service, "127.0.0.1")
    return CertificateSpec(
        "apiserver", "kube-apiserver", hosts=(*names, *(str(host) for host in hosts))
    )


def node(name: str, index: int, addresses: Addresses) -> CertificateSpec:
    """The kubelet's, as client of the API server and as server of logs and exec."""
    return CertificateSpec(
        name, f"system:node:{name}", "system:nodes", (name, str(addresses.node(index)))
    )


def all_specs(addresses: Addresses, nodes: tuple[str, ...]) -> tuple[CertificateSpec, ...]:
    return (
        apiserver(addresses),
        ADMIN,
        APISERVER_CLIENT,
        FRONT_PROXY,
        *COMPONENTS,
        *(node(name, index, addresses) for index, name in enumerate(nodes)),
    )
