"""Builds and runs `moorage-driver node`."""

from __future__ import annotations

import asyncio

from driver.apiserver import ClaimReader
from driver.cluster import NodeCluster
from driver.discovery.handlers import Handlers, HandlerSettings
from driver.disk import Folder, ProcessLock, boot_id
from driver.dra_kubelet import serve
from driver.kubelet_claims import KubeletClaims
from driver.kubelet_sockets import KubeletPaths
from driver.node import Node
from driver.settings import NodeSettings
from kube.api import connect


async def run_node(settings: NodeSettings) -> None:
    """Serve one node until cancelled.

    The kubelet is served from the first moment, from the checkpoint if need be: what was granted
    is kept up although the API server may be away.
    """
    paths = KubeletPaths(settings.kubelet_root, settings.pod_uid)
    node = Node(
        settings.node,
        boot_id(),
        data=Folder(paths.data),
        cdi_files=Folder(settings.cdi_root),
        lock=ProcessLock(paths.lock),
    )
    handlers = Handlers(
        HandlerSettings(
            rescan_interval=settings.rescan_interval, debug_echo_file=settings.debug_echo_file
        )
    )
    async with connect(settings.kubeconfig) as client, asyncio.TaskGroup() as tasks:
        cluster = NodeCluster(
            client,
            settings.node,
            handlers,
            tasks,
            unique_devices_default=settings.unique_devices_default,
        )
        claims = KubeletClaims(
            node,
            ClaimReader(client),
            cluster,
            pools=frozenset({settings.node}),
        )
        async with serve(paths, claims, cluster):
            await cluster.run()
