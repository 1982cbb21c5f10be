"""The webhook beside an API server: its rights, its process, its registration."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import yaml

from local_cluster.api import ApiError, Certificate, Cluster
from tests.deploy.documents import CRDS, DEPLOY, MANIFESTS
from tests.e2e.webhook.objects import OPEN, a_pod
from tests.e2e.webhook.registrations import registration

ROOT = DEPLOY.parent
NAMESPACE = "moorage-system"
TEMPLATE = DEPLOY / "webhook/validatingwebhookconfiguration.yaml"
MUTATING_TEMPLATE = DEPLOY / "webhook/mutatingwebhookconfiguration.yaml"
RIGHTS = ("webhook-serviceaccount", "webhook-clusterrole", "webhook-clusterrolebinding")
STOP_SECONDS = 20


class WebhookProcess:
    """One process of the webhook, under an account of the cluster, where the host listens."""

    def __init__(self, cluster: Cluster, account: str = "webhook") -> None:
        self.log = cluster.logs / f"{account}-process.log"
        self.certificate: Certificate = cluster.issue_certificate("moorage-webhook")
        self._cluster = cluster
        self._kubeconfig = cluster.service_account_kubeconfig(account, namespace=NAMESPACE)
        self._address = (cluster.host_address, _free_port(cluster.host_address))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return self._address[0]

    @property
    def port(self) -> int:
        return self._address[1]

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def tls_flags(self) -> tuple[str, ...]:
        return (
            f"--tls-cert-file={self.certificate.certificate}",
            f"--tls-private-key-file={self.certificate.key}",
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *flags: str) -> None:
        argv = [
            *(sys.executable, "-m", "webhook", f"--kubeconfig={self._kubeconfig}"),
            f"--listen-address={self.host}:{self.port}",
            *self.tls_flags,
            *flags,
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(argv, cwd=ROOT, stderr=log)

    def wait_ready(self) -> None:
        self._cluster.wait_until(f"{self.url} is ready", lambda: self.status("/readyz") == 200)

    def status(self, path: str) -> int:
        """The status of a GET; 0 where nobody answers."""
        context = ssl.create_default_context(cafile=self.certificate.ca)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(f"{self.url}{path}", timeout=5) as answer:
                return int(answer.status)
        except urllib.request.HTTPError as error:
            error.close()
            return error.code
        except (URLError, OSError):
            return 0

    def stop(self) -> int:
        """SIGTERM; returns the exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(STOP_SECONDS)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def install(cluster: Cluster) -> None:
    """The definitions, and the webhook's account with what it may read."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.apply(namespace)
    cluster.kubectl("apply", "-f", str(CRDS))
    for name in RIGHTS:
        cluster.apply(MANIFESTS / f"{name}.yaml")
    for name in ("queues.moorage.dev", "configurations.akri.sh", "instances.akri.sh"):
        cluster.wait(f"crd/{name}", "condition=Established")


@contextmanager
def registered(cluster: Cluster, process: WebhookProcess) -> Iterator[None]:
    """The API server asks this process, at the latest when the block begins."""
    # The one that is waited for comes last.
    cluster.apply(filled_in(process.certificate.ca, process.url, MUTATING_TEMPLATE))
    cluster.apply(filled_in(process.certificate.ca, process.url))
    try:
        cluster.wait_until("the webhook is asked", lambda: _is_asked(cluster))
        yield
    finally:
        kinds = "validatingwebhookconfiguration,mutatingwebhookconfiguration"
        cluster.kubectl("delete", kinds, "moorage")


def filled_in(ca: Path, base_url: str, template: Path = TEMPLATE) -> dict[str, Any]:
    return registration(yaml.safe_load(template.read_text()), ca.read_bytes(), base_url=base_url)


def _is_asked(cluster: Cluster) -> bool:
    """A Queue above one that does not exist gets a warning, from the webhook alone."""
    probe = {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "probe"},
        "spec": {"parent": "nobody-made-this"},
    }
    answer = cluster.kubectl(
        *("create", "--dry-run=server", "-f", "-"), stdin=yaml.safe_dump(probe), check=False
    )
    return "nobody-made-this" in answer.stderr


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as listening:
        return int(listening.getsockname()[1])


def wait_configurations_known(cluster: Cluster) -> None:
    """Its watch of Configurations may have failed while there were none to watch."""
    cluster.wait_until("the Configuration usb is known", lambda: _refuses_users_of_usb(cluster))


def _refuses_users_of_usb(cluster: Cluster) -> bool:
    """That this resource is accounted, only the Configuration of its name says."""
    body = a_pod(resources={"limits": {"akri.sh/usb": "1"}}, namespace=OPEN)
    del body["spec"]["schedulerName"]
    with cluster.api() as api:
        try:
            api.create(f"/api/v1/namespaces/{OPEN}/pods?dryRun=All", body)
        except ApiError:
            return True
    return False
