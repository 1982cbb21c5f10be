"""Secrets for discovery on the real API server, under the role of the installed driver."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from driver.api import ValueReference
from driver.handlers.properties.apiserver_properties import NodeProperties
from kube.calls.api import ApiClient, ForbiddenError, connect
from kube.kinds import SECRETS
from local_cluster.api import Cluster
from tests.driver.builders import a_configuration

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "deploy" / "manifests"
NAMESPACE = "moorage-system"

REFERENCE = ValueReference(kind="Secret", namespace="default", name="cameras", key="password")
ASKED = a_configuration(discovery_properties={"password_default": REFERENCE})
OBJECT = """
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: loop}
spec:
  discoveryHandler:
    name: onvif
    discoveryProperties:
    - {name: password_default, valueFrom: {secretKeyRef: {name: cameras, key: password}}}
"""


@pytest.fixture(scope="module")
def installed(apiserver: Cluster) -> Iterator[Cluster]:
    """The API server with the driver's own permissions, and two Secrets."""
    apiserver.apply(MANIFESTS / "00-namespace.yaml")
    parts = [
        MANIFESTS / f"driver-node-{part}.yaml"
        for part in ("serviceaccount", "clusterrole", "clusterrolebinding")
    ]
    for part in parts:
        apiserver.apply(part)
    write(apiserver, "cameras", "old")
    write(apiserver, "others", "hidden")
    yield apiserver
    for kind, name in (("role", "moorage.dev:properties:loop"), ("secret", "others")):
        apiserver.kubectl("delete", kind, name, "-n", "default")
    apiserver.kubectl("delete", "rolebinding", "moorage.dev:properties:loop", "-n", "default")
    for part in parts:
        apiserver.kubectl("delete", "-f", str(part))


def write(cluster: Cluster, name: str, password: str) -> None:
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": "default"},
            "stringData": {"password": password},
        }
    )


def permit(cluster: Cluster) -> None:
    """Apply what the command prints."""
    printed = subprocess.run(
        [sys.executable, "-m", "driver", "permissions", "-f", "-"],
        input=OBJECT,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    cluster.apply(printed)


class Node:
    """The properties of a node's driver."""

    def __init__(self, client: ApiClient, tasks: asyncio.TaskGroup) -> None:
        self.properties = NodeProperties(client, tasks)
        self._changed = asyncio.Event()
        self.properties.on_change(self._changed.set)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await self._changed.wait()
                self._changed.clear()

    async def until_read(self, password: str) -> None:
        read = {"password_default": password.encode()}
        await self.until(lambda: self.properties.read(ASKED) == read)

    async def until_told(self, words: str) -> None:
        await self.until(lambda: words in str(self.properties.problems(ASKED)))


@asynccontextmanager
async def a_node(kubeconfig: Path) -> AsyncIterator[tuple[Node, ApiClient]]:
    async with connect(kubeconfig) as client, asyncio.TaskGroup() as tasks:
        yield (node := Node(client, tasks)), client
        node.properties.follow(())


async def test_a_secret_is_read_as_soon_as_a_role_names_it_and_whenever_it_changes(
    installed: Cluster,
) -> None:
    kubeconfig = installed.service_account_kubeconfig("driver-node", namespace=NAMESPACE)
    async with a_node(kubeconfig) as (node, client):
        node.properties.follow([ASKED])
        await node.until_told("The driver may not read Secret default/cameras")

        await asyncio.to_thread(permit, installed)
        await node.until_read("old")
        assert node.properties.problems(ASKED) == ()
        for selection in (
            SECRETS.select("default", field_selector="metadata.name=others"),
            SECRETS.select("default"),
            SECRETS.select(),
        ):
            with pytest.raises(ForbiddenError):
                await client.list(selection)

        await asyncio.to_thread(write, installed, "cameras", "new")
        await node.until_read("new")

        server = installed.part("kube-apiserver")
        await asyncio.to_thread(server.kill)
        assert node.properties.read(ASKED) == {"password_default": b"new"}
        await asyncio.to_thread(server.start)
        await asyncio.to_thread(write, installed, "cameras", "newer")
        await node.until_read("newer")

        await asyncio.to_thread(installed.kubectl, "delete", "secret", "cameras", "-n", "default")
        await node.until_told("Secret default/cameras does not exist")
        assert node.properties.read(ASKED) is None
