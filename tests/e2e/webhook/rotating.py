"""A webhook of two replicas with a CA of its own, under rights like those of the manifests.

It has names of its own too, so that it may come and go beside the webhook of the other stories.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import yaml

from kube.calls.api import ApiClient, ApiError, WriteOptions
from kube.kinds import CONFIG_MAPS, QUEUES, SECRETS
from kube.objects import JsonObject
from kube.resources import Resource
from local_cluster.api import Cluster
from tests.deploy.documents import DEPLOY, MANIFESTS
from tests.e2e.webhook.installation import NAMESPACE, TEMPLATE, WebhookProcess
from tests.e2e.webhook.objects import a_queue

NAME = "rotating"
SECRET = f"{NAME}-tls"
VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
)
RIGHTS = ("configmap", "serviceaccount", "role", "rolebinding", "clusterrole", "clusterrolebinding")
DAYS = 1 / 24
"""An hour: long enough for any machine, and 3.6 s until an authority is announced."""

DRY_RUN = WriteOptions(dry_run=True, timeout_seconds=30)
SECONDS = 45.0


class Replica(WebhookProcess):
    """One of two processes that share a CA."""

    @property
    def tls_flags(self) -> tuple[str, ...]:
        return (
            f"--tls-secret={NAMESPACE}/{SECRET}",
            f"--tls-names={self.host}",
            f"--webhook-configuration={NAME}",
            f"--certificate-days={DAYS}",
        )

    def status(self, path: str) -> int:
        """As a probe of the kubelet, which verifies nothing."""
        return _status(self.host, self.port, path)


def install(cluster: Cluster) -> None:
    """The rights of the manifests and the policies on them, for other names."""
    documents = [
        document
        for path in (
            *(MANIFESTS / f"webhook-{kind}.yaml" for kind in RIGHTS),
            DEPLOY / "policies/webhook-writes.yaml",
            DEPLOY / "policies/policybindings.yaml",
        )
        for document in yaml.safe_load_all(path.read_text())
        if path.parent == MANIFESTS or document["metadata"]["name"].startswith("moorage-webhook-")
    ]
    cluster.apply([_renamed(document) for document in documents])


def uninstall(cluster: Cluster) -> None:
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    names = (f"{NAME}-registrations", f"{NAME}-secrets")
    cluster.kubectl("delete", kinds, *names)
    cluster.kubectl("delete", "validatingwebhookconfiguration", NAME, "--ignore-not-found")
    cluster.kubectl("delete", "configmap", f"{SECRET}-ca", "-n", NAMESPACE)
    cluster.kubectl("delete", "secret", SECRET, "-n", NAMESPACE, "--ignore-not-found")


def registration(*replicas: Replica) -> JsonObject:
    """Both replicas are asked about each Queue; nobody is trusted yet."""
    template = yaml.safe_load(TEMPLATE.read_text())
    (about_queues,) = (one for one in template["webhooks"] if one["name"].startswith("queues."))
    entries = [
        {
            **about_queues,
            "name": f"replica-{number}.{NAME}.moorage.dev",
            "clientConfig": {"url": f"{replica.url}/validate"},
            # A call that a busy machine delays is not one that was refused.
            "timeoutSeconds": 20,
        }
        for number, replica in enumerate(replicas)
    ]
    return {**template, "metadata": {"name": NAME}, "webhooks": entries}


class Rotation:
    """What the stories read and write of the CA, and who calls meanwhile."""

    def __init__(self, cluster: Cluster, admin: ApiClient, replicas: tuple[Replica, ...]) -> None:
        self.cluster = cluster
        self.admin = admin
        self.replicas = replicas
        self.calls = 0
        self.handshakes = 0
        self.refused: list[str] = []

    async def data(self) -> dict[str, bytes]:
        found = await self.admin.get(SECRETS.at(SECRET, NAMESPACE))
        return {name: b64decode(value) for name, value in (found.get("data") or {}).items()}

    async def published(self) -> str:
        found = await self.admin.get(CONFIG_MAPS.at(f"{SECRET}-ca", NAMESPACE))
        return str((found.get("data") or {}).get("ca.crt", ""))

    async def write(self, data: Mapping[str, bytes]) -> None:
        """Whatever a replica writes at the same time is lost."""
        encoded = {name: b64encode(value).decode() for name, value in data.items()}
        path = SECRETS.at(SECRET, NAMESPACE)
        await self.admin.merge_patch(path, {"data": encoded})

    async def bundles(self) -> list[bytes]:
        found = await self.admin.get(VALIDATING.at(NAME))
        configs = (entry["clientConfig"] for entry in found["webhooks"])
        return [b64decode(config.get("caBundle", "")) for config in configs]

    async def until(self, what: str, is_so: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                while not await is_so():  # noqa: ASYNC110  It is asked of others.
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(
                f"not within {SECONDS:.0f} s: {what}; {self.refused[:3]}"
            ) from None

    async def is_asked(self) -> bool:
        try:
            await self.admin.create(QUEUES, a_queue("probe"), options=DRY_RUN)
        except ApiError as error:
            return f"{NAME}.moorage.dev" not in str(error)
        return True

    async def shown(self) -> list[str]:
        """The certificate that each replica shows to whoever calls now."""
        return [await asyncio.to_thread(_shown, one.host, one.port) for one in self.replicas]

    async def everybody_shows(self, certificate: bytes) -> bool:
        wanted = ssl.PEM_cert_to_DER_cert(certificate.decode()).hex()
        return set(await self.shown()) == {wanted}

    @asynccontextmanager
    async def called_all_the_time(self) -> AsyncIterator[None]:
        """Nobody is refused while the block runs: neither the API server, nor a new connection."""
        async with asyncio.TaskGroup() as tasks:
            callers = [tasks.create_task(self._call()), tasks.create_task(self._connect())]
            before = (self.calls, self.handshakes)
            yield
            # However slow the machine is, they did call.
            enough = [count + 10 for count in before]

            async def is_enough() -> bool:
                return self.calls >= enough[0] and self.handshakes >= enough[1]

            await self.until("there were calls", is_enough)
            for caller in callers:
                caller.cancel()
        assert self.refused == []

    async def _call(self) -> None:
        while True:
            try:
                await self.admin.create(QUEUES, a_queue("probe"), options=DRY_RUN)
            except ApiError as error:
                self.refused.append(f"call: {error}")
            self.calls += 1

    async def _connect(self) -> None:
        """Verify by the bundle that was there before, as an API server does that lags behind."""
        while True:
            for bundle, replica in zip(await self.bundles(), self.replicas, strict=True):
                try:
                    await asyncio.to_thread(_verify, replica.host, replica.port, bundle)
                except (OSError, ssl.SSLError) as error:
                    self.refused.append(f"handshake with {replica.url}: {error}")
                self.handshakes += 1


def _renamed(document: Any) -> Any:
    text = yaml.safe_dump(document, width=10_000)
    for old, new in (
        ("resourceNames:\n  - moorage\n", f"resourceNames:\n  - {NAME}\n"),
        ("moorage-webhook-tls", SECRET),
        ("moorage-webhook", NAME),
        ("moorage-system:webhook", f"{NAMESPACE}:{NAME}"),
        ("name: webhook\n", f"name: {NAME}\n"),
    ):
        text = text.replace(old, new)
    return yaml.safe_load(text)


def _verify(host: str, port: int, bundle: bytes) -> None:
    context = ssl.create_default_context(cadata=bundle.decode())
    with (
        socket.create_connection((host, port), timeout=10) as connection,
        context.wrap_socket(connection, server_hostname=host),
    ):
        pass


def _shown(host: str, port: int) -> str:
    context = _unverified()
    with (
        socket.create_connection((host, port), timeout=10) as connection,
        context.wrap_socket(connection) as tls,
    ):
        return (tls.getpeercert(binary_form=True) or b"").hex()


def _status(host: str, port: int, path: str) -> int:
    try:
        with (
            socket.create_connection((host, port), timeout=10) as connection,
            _unverified().wrap_socket(connection) as tls,
        ):
            tls.sendall(
                f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
            )
            return int(tls.recv(65536).split()[1])
    except (OSError, IndexError):
        return 0


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
