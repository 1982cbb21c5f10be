"""The cluster as tests see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeVar

from local_cluster import (
    collection,
    containerd_images,
    kubectl,
    lifecycle,
    service_accounts,
    shells,
)
from local_cluster.apiserver import ApiServer
from local_cluster.authority import Authority
from local_cluster.blueprint import Blueprint
from local_cluster.certificates import CertificateSpec
from local_cluster.component_handles import ComponentHandle, ComponentProcess
from local_cluster.component_pods import ComponentPods
from local_cluster.components import Component, Mode
from local_cluster.errors import ConditionTimeoutError, MachineError
from local_cluster.handles import Node, Part
from local_cluster.health import wait_until
from local_cluster.kubectl import Manifest
from local_cluster.layout import layout_of
from local_cluster.object_reads import ObjectReads
from local_cluster.records import blueprint_of
from local_cluster.settings import ClusterSettings
from local_cluster.supervisor import Supervisor

Value = TypeVar("Value")
WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate, its key, and the CA that signed it."""

    certificate: Path
    key: Path
    ca: Path


class Cluster:
    """A running cluster. `Cluster.up` makes one, `Cluster.open` finds one in its work folder."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._use(blueprint)
        self._reads = ObjectReads(self.api, self.kubectl)

    @classmethod
    def up(cls, settings: ClusterSettings) -> Cluster:
        return cls(lifecycle.up(settings))

    @classmethod
    def open(cls, work_dir: Path) -> Cluster:
        return cls(blueprint_of(layout_of(work_dir)))

    def down(self, *, purge: bool = False) -> None:
        """End everything; keeps the logs unless they are purged, too."""
        self._reads.close()
        lifecycle.down(self.work_dir, purge=purge)

    @property
    def settings(self) -> ClusterSettings:
        return self._blueprint.settings

    @property
    def work_dir(self) -> Path:
        return self._blueprint.layout.work_dir

    @property
    def logs(self) -> Path:
        return self._blueprint.layout.logs

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._blueprint.layout.kubeconfig

    @property
    def server(self) -> str:
        """The API server's URL; the host reaches it, too."""
        return self._blueprint.addresses.server

    @property
    def host_address(self) -> str:
        """Where processes of the host listen for the API server, schedulers and pods."""
        return str(self._blueprint.addresses.host)

    @property
    def address(self) -> str:
        """The control plane's address: etcd and the health ports of all cluster-wide parts."""
        return str(self._blueprint.addresses.control_plane)

    def write_exports(self) -> str:
        """Lines that a shell sources to reach the cluster; they are in the work folder, too."""
        return shells.write_exports(self._blueprint)

    @property
    def kubectl_program(self) -> str:
        return self._blueprint.binaries.kubectl

    def kubectl(
        self,
        *args: str,
        stdin: str | None = None,
        check: bool = True,
    ) -> CompletedProcess[str]:
        """Run kubectl as the administrator; raises KubectlError with its output."""
        program = self.kubectl_program
        return kubectl.run_kubectl(program, self.kubeconfig, args, stdin=stdin, check=check)

    def apply(self, manifest: Manifest, *, namespace: str | None = None) -> None:
        """YAML text, a file, one object or several."""
        where = ("--namespace", namespace) if namespace else ()
        self.kubectl("apply", *where, "-f", "-", stdin=kubectl.as_text(manifest))

    def read(self, path: str) -> Any:
        """What the API server answers to a GET of a path, as the administrator."""
        return self._reads.read(path)

    def path_of(self, kind: str, namespace: str | None = None) -> str | None:
        """The path of all objects of a kind; None if the API server does not serve it."""
        return self._reads.path_of(kind, namespace)

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> dict[str, Any] | None:
        """One object, or None when it does not exist; without a namespace of `default`."""
        return self._reads.one(kind, name, namespace)

    def list(
        self, kind: str, *, namespace: str | None = None, selector: str | None = None
    ) -> list[dict[str, Any]]:
        """Objects of one namespace, or of all (cluster-scoped kinds, too)."""
        return self._reads.all(kind, namespace, selector)

    def wait(
        self,
        resource: str,
        condition: str,
        *,
        namespace: str = "default",
        seconds: float = WAIT_SECONDS,
    ) -> None:
        """`kubectl wait`, such as ("pod/a", "condition=Ready"); a failure describes the object."""
        options = ("--namespace", namespace, f"--timeout={seconds}s")
        done = self.kubectl("wait", resource, f"--for={condition}", *options, check=False)
        if done.returncode != 0:
            kind_and_name = resource.split("/", 1)
            shown = self.kubectl("describe", *kind_and_name, "--namespace", namespace, check=False)
            raise ConditionTimeoutError(f"{resource}: {done.stderr.strip()}\n{shown.stdout}")

    def wait_until(
        self,
        what: str,
        condition: Callable[[], Value | None],
        *,
        seconds: float = WAIT_SECONDS,
    ) -> Value:
        """Poll until the condition is true and return its value; `what` names it when it fails."""
        found: list[Value | None] = [None]

        def ask() -> bool:
            found[0] = condition()
            return bool(found[0])

        if not wait_until(ask, seconds) or found[0] is None:
            raise ConditionTimeoutError(f"not in {seconds:.0f} s: {what}; logs are in {self.logs}")
        return found[0]

    def api(self, certificate: str = "admin") -> ApiServer:
        """A small JSON client, as the administrator; close it, or use it in a `with`."""
        return ApiServer(self.server, self._blueprint.layout.pki, certificate)

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self._supervisor.parts)

    def part(self, name: str) -> Part:
        return Part(self._supervisor, name)

    @property
    def nodes(self) -> tuple[Node, ...]:
        addresses = self._blueprint.addresses
        return tuple(
            Node(self._blueprint.layout, planned, str(addresses.node(planned.index)))
            for planned in self._blueprint.nodes
        )

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise MachineError(f"no real node {name}")

    def power_off(self, node: str) -> None:
        """A power cut of a node; `reconfigure` boots it again."""
        lifecycle.power_off(self._blueprint, node)

    def load_image(self, archive: Path) -> None:
        """Import a docker or OCI archive into every node."""
        containerd_images.import_archive(self._blueprint, archive)

    def tag_image(self, source: str, name: str) -> None:
        """Let an image of the nodes appear under one more name."""
        containerd_images.tag_image(self._blueprint, source, name)

    def remove_image(self, name: str) -> None:
        containerd_images.remove_image(self._blueprint, name)

    def reconfigure(self, **changes: Any) -> None:
        """Change settings by name; restarts the parts that they reach and no others."""
        self._use(lifecycle.up(replace(self.settings, **changes)))

    @contextmanager
    def reconfigured(self, **changes: Any) -> Iterator[None]:
        """Settings for a while, then those from before."""
        before = {name: getattr(self.settings, name) for name in changes}
        self.reconfigure(**changes)
        try:
            yield
        finally:
            self.reconfigure(**before)

    def add_fake_nodes(self, count: int) -> None:
        """`count` fake nodes more, Ready when this returns. They carry a taint (fake_nodes)."""
        self.reconfigure(fake_nodes=self.settings.fake_nodes + count)

    def remove_fake_nodes(self) -> None:
        self.reconfigure(fake_nodes=0)

    def collect(self, target: Path) -> Path:
        """Logs, events and objects, for whoever reads about a failed test."""
        return collection.collect(self._blueprint.layout, self.kubectl, target)

    def issue_certificate(self, name: str, hosts: Sequence[str] = ()) -> Certificate:
        """Signed by the cluster's CA, for a webhook or extender on the host."""
        authority = Authority(self._blueprint.layout.pki)
        spec = CertificateSpec(name, name, hosts=tuple(hosts) or (self.host_address,))
        certificate, key = authority.issue(spec, self._blueprint.layout.work_dir / "issued")
        return Certificate(certificate, key, authority.certificate_file)

    def service_account_kubeconfig(
        self, name: str, *, namespace: str = "default", node: str | None = None
    ) -> Path:
        """A kubeconfig with a token of that account; bound to a node, as pods' tokens are."""
        with self.api() as api:
            token = service_accounts.request_token(api, namespace, name, node)
        layout = self._blueprint.layout
        file = f"{namespace}-{name}{f'-{node}' if node else ''}.kubeconfig"
        path = layout.work_dir / "issued" / file
        return service_accounts.write_kubeconfig(path, self.server, layout.pki / "ca.crt", token)

    def start_component(self, component: Component, mode: Mode = Mode.PROCESS) -> ComponentHandle:
        """Start a component of ours; returns at once, so call `wait_ready`."""
        for manifest in component.manifests:
            self.apply(manifest, namespace=component.namespace)
        handle = self._handle(component, mode)
        handle.start()
        return handle

    def _handle(self, component: Component, mode: Mode) -> ComponentHandle:
        if mode is Mode.POD:
            return ComponentPods(self.kubectl, self.kill_container, component)
        node = component.node or self.nodes[0].name
        kubeconfig = self.service_account_kubeconfig(
            component.service_account, namespace=component.namespace, node=node
        )
        placed = replace(component, node=node)
        layout, addresses = self._blueprint.layout, self._blueprint.addresses
        return ComponentProcess(layout, addresses, placed, kubeconfig)

    def revive(self) -> None:
        """Start again what died by itself, as a kubelet would: a scheduler that lost its lease."""
        self._supervisor.revive()

    def kill_container(self, node: str, container: str) -> None:
        """SIGKILL to all processes of a container, by its ID in containerd."""
        ctr = (self._blueprint.binaries.ctr, "--namespace", "k8s.io")
        self.node(node).exec((*ctr, "tasks", "kill", "--signal", "SIGKILL", container))

    def _use(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        self._supervisor = Supervisor(blueprint)
