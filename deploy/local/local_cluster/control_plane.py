"""The cluster-wide parts: etcd, the API server, controllers, two schedulers, kube-proxy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from local_cluster import addresses as ports
from local_cluster import configurations
from local_cluster.blueprint import Blueprint, PlannedNode
from local_cluster.configurations import document
from local_cluster.parts import AliveProbe, HttpProbe, PartSpec, flags, joined

AUDIT_LOG = "audit.log"


def cluster_parts(blueprint: Blueprint) -> tuple[PartSpec, ...]:
    """Those that the settings ask for, in the order of starting."""
    return tuple(
        build(blueprint) for name, build in BUILDERS.items() if name in blueprint.settings.parts
    )


def etcd(blueprint: Blueprint) -> PartSpec:
    """No fsync: nobody mourns the data of a throw-away cluster after a power cut."""
    client = _etcd_url(blueprint)
    peer = "http://127.0.0.1:2380"
    values = {
        "name": "etcd",
        "data-dir": str(blueprint.layout.etcd_data),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"etcd={peer}",
        "unsafe-no-fsync": "true",
        "auto-compaction-retention": "5m",
        "log-level": "warn",
    }
    argv = (str(blueprint.binaries.etcd / "etcd"), *flags(values))
    return PartSpec(name="etcd", argv=argv, probe=HttpProbe(f"{client}/health"), wave=0)


def apiserver(blueprint: Blueprint) -> PartSpec:
    audit_values, audit_files = _audit(blueprint)
    values = {
        **_apiserver_addresses(blueprint),
        **_apiserver_trust(blueprint.layout.pki),
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "profiling": "false",
        **audit_values,
        **_gates(blueprint),
    }
    if blueprint.settings.runtime_config:
        values["runtime-config"] = joined(blueprint.settings.runtime_config)
    values.update(blueprint.settings.apiserver_flags)
    return PartSpec(
        name="kube-apiserver",
        argv=(blueprint.kubernetes("kube-apiserver"), *flags(values)),
        probe=HttpProbe(f"{blueprint.addresses.server}/readyz"),
        wave=1,
        files=audit_files,
    )


def controller_manager(blueprint: Blueprint) -> PartSpec:
    name, pki = "kube-controller-manager", blueprint.layout.pki
    path, content = blueprint.kubeconfig(name, name)
    values = {
        "kubeconfig": str(path),
        **_serving(blueprint, path, ports.CONTROLLER_MANAGER_PORT),
        "leader-elect": "false",
        "root-ca-file": str(pki / "ca.crt"),
        "cluster-signing-cert-file": str(pki / "ca.crt"),
        "cluster-signing-key-file": str(pki / "ca.key"),
        "service-account-private-key-file": str(pki / "sa.key"),
        "use-service-account-credentials": "true",
        # Its default lies outside the work folder and would be made there.
        "flex-volume-plugin-dir": str(blueprint.layout.work_dir / "volume-plugins"),
        "kube-api-qps": "500",
        "kube-api-burst": "1000",
        **_gates(blueprint),
    }
    return PartSpec(
        name=name,
        argv=(blueprint.kubernetes(name), *flags(values)),
        probe=_secure_probe(blueprint, ports.CONTROLLER_MANAGER_PORT),
        wave=2,
        files={path: content},
    )


def scheduler(blueprint: Blueprint) -> PartSpec:
    """The cluster's own: for pods that name no scheduler."""
    return _scheduler(
        blueprint, "kube-scheduler", ports.SCHEDULER_PORT, "default-scheduler", overlay={}
    )


def moorage_scheduler(blueprint: Blueprint) -> PartSpec:
    """The second one: for pods with `schedulerName: moorage`. It takes the overlay."""
    overlay = blueprint.settings.scheduler_overlay
    port = ports.MOORAGE_SCHEDULER_PORT
    return _scheduler(blueprint, "kube-scheduler-moorage", port, "moorage", overlay=overlay)


def kube_proxy(blueprint: Blueprint, own: PlannedNode | None = None) -> PartSpec:
    """For the cluster's network namespace, or for that of a node."""
    name = f"kube-proxy-{own.name}" if own else "kube-proxy"
    path, kubeconfig = blueprint.kubeconfig(name, "kube-proxy")
    config = blueprint.layout.config / f"{name}.json"
    addresses = blueprint.addresses
    address = addresses.node(own.index) if own else addresses.control_plane
    node = own or next(iter(blueprint.nodes), None)
    called = node.name if node else blueprint.layout.network_namespace
    proxy = configurations.kube_proxy(called, address, path, blueprint.settings.node_gates)
    return PartSpec(
        name=name,
        argv=(blueprint.kubernetes("kube-proxy"), f"--config={config}"),
        probe=HttpProbe(f"http://{address}:{ports.KUBE_PROXY_HEALTH_PORT}/livez"),
        wave=2,
        node=own.name if own else None,
        files={path: kubeconfig, config: document(proxy)},
    )


def fake_kubelets(blueprint: Blueprint) -> PartSpec:
    """This package again, as a process that keeps the leases of fake nodes."""
    values = {
        "server": blueprint.addresses.server,
        "pki": str(blueprint.layout.pki),
        "count": str(blueprint.settings.fake_nodes),
    }
    return PartSpec(
        name="fake-nodes",
        argv=(sys.executable, "-m", "local_cluster.fake_kubelets", *flags(values)),
        probe=AliveProbe(),
        wave=2,
        env={"PYTHONPATH": str(Path(__file__).parent.parent)},
    )


BUILDERS: Mapping[str, Callable[[Blueprint], PartSpec]] = {
    "etcd": etcd,
    "kube-apiserver": apiserver,
    "kube-controller-manager": controller_manager,
    "kube-scheduler": scheduler,
    "kube-scheduler-moorage": moorage_scheduler,
    "kube-proxy": kube_proxy,
}


def _scheduler(
    blueprint: Blueprint, part: str, port: int, scheduler_name: str, *, overlay: Mapping[str, Any]
) -> PartSpec:
    path, kubeconfig = blueprint.kubeconfig(part, part)
    config = blueprint.layout.config / f"{part}.json"
    configuration = configurations.scheduler(scheduler_name, part, path, overlay)
    values = {
        "config": str(config),
        **_serving(blueprint, path, port),
        **_gates(blueprint),
    }
    return PartSpec(
        name=part,
        argv=(blueprint.kubernetes("kube-scheduler"), *flags(values)),
        probe=_secure_probe(blueprint, port),
        wave=2,
        files={path: kubeconfig, config: document(configuration)},
    )


def _apiserver_addresses(blueprint: Blueprint) -> dict[str, str]:
    """Bound to all addresses, since pods reach it through the service, too."""
    return {
        "advertise-address": str(blueprint.addresses.control_plane),
        "bind-address": "0.0.0.0",
        "secure-port": str(ports.APISERVER_PORT),
        "etcd-servers": _etcd_url(blueprint),
        "service-cluster-ip-range": str(ports.SERVICES),
        # Node names do not resolve: logs and exec go to addresses.
        "kubelet-preferred-address-types": "InternalIP",
    }


def _apiserver_trust(pki: Path) -> dict[str, str]:
    ca = str(pki / "ca.crt")
    return {
        "client-ca-file": ca,
        "tls-cert-file": str(pki / "apiserver.crt"),
        "tls-private-key-file": str(pki / "apiserver.key"),
        "kubelet-certificate-authority": ca,
        "kubelet-client-certificate": str(pki / "apiserver-client.crt"),
        "kubelet-client-key": str(pki / "apiserver-client.key"),
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": str(pki / "sa.pub"),
        "service-account-signing-key-file": str(pki / "sa.key"),
        "requestheader-client-ca-file": ca,
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "proxy-client-cert-file": str(pki / "front-proxy.crt"),
        "proxy-client-key-file": str(pki / "front-proxy.key"),
    }


def _audit(blueprint: Blueprint) -> tuple[dict[str, str], dict[Path, str]]:
    if not blueprint.settings.audit:
        return {}, {}
    policy = blueprint.layout.config / "audit-policy.json"
    values = {
        "audit-policy-file": str(policy),
        "audit-log-path": str(blueprint.layout.logs / AUDIT_LOG),
    }
    return values, {policy: document(configurations.audit_policy())}


def _serving(blueprint: Blueprint, kubeconfig: Path, port: int) -> dict[str, str]:
    """How controllers and schedulers serve health and metrics."""
    return {
        "authentication-kubeconfig": str(kubeconfig),
        "authorization-kubeconfig": str(kubeconfig),
        "bind-address": str(blueprint.addresses.control_plane),
        "secure-port": str(port),
    }


def _gates(blueprint: Blueprint) -> dict[str, str]:
    gates, emulated = blueprint.settings.feature_gates, blueprint.settings.emulated_version
    values = {"feature-gates": joined(gates)} if gates else {}
    return {**values, "emulated-version": emulated} if emulated else values


def _etcd_url(blueprint: Blueprint) -> str:
    return f"http://{blueprint.addresses.control_plane}:{ports.ETCD_PORT}"


def _secure_probe(blueprint: Blueprint, port: int) -> HttpProbe:
    return HttpProbe(f"https://{blueprint.addresses.control_plane}:{port}/healthz")
