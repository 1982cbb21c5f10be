"""Builds and runs `moorage-driver node`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from driver.api import DRIVER_NAME, NodeName
from driver.device_plugin.node_leftovers import NodePlace, free_leftovers
from driver.discovery.handlers import Handlers
from driver.handlers.external_handlers import ExternalHandlers
from driver.handlers.node_sources import NodeSources
from driver.handlers.registration_socket import RegistrationSocket
from driver.handlers.sdk_requests import AGENT_SOCKET
from driver.offer_paths import OfferPath
from driver.plumbing.disk import Folder, ProcessLock, boot_id
from driver.plumbing.kubelet_sockets import Access, KubeletPaths
from driver.plumbing.prometheus import CLAIMS_PREPARED, SNAPSHOTS
from driver.preparing.apiserver_claims import ClaimReader
from driver.preparing.apiserver_status import ClaimStatuses
from driver.preparing.files.checkpoint import load
from driver.preparing.files.disk_checkpoint import NAME as CHECKPOINT
from driver.preparing.files.disk_metadata import MetadataFiles
from driver.preparing.files.prepared import prepared_homes
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.kubelet_plugin import Registration, serve
from driver.preparing.kubelet_uses import KubeletUses
from driver.preparing.node_claims import NodeClaims
from driver.publishing.apiserver_path import NodePath
from driver.publishing.disk_path_lock import PathLock
from driver.publishing.shown.local_pools import Homes
from driver.running.monitoring import ready_socket
from driver.running.monitoring.prometheus_figures import (
    handler_figures,
    inventory_figures,
    node_slot_figures,
    tell,
)
from driver.running.monitoring.ready_main import socket_name
from driver.running.node.node_cluster import NodeCluster, OfferPlace
from driver.running.settings import NodeSettings
from kube.api import ApiClient, Event, EventRecorder, connect, trace_to

USER_AGENT = "moorage-driver-node"
"""What audit logs tell its requests by."""


async def run_node(settings: NodeSettings) -> None:
    """Serve one node until cancelled.

    The kubelet is served from the first moment, from the checkpoint if need be: what was granted
    is kept up although the API server may be away.
    """
    trace_to(settings.tracing_endpoint, USER_AGENT)
    paths = KubeletPaths(settings.kubelet_root, settings.pod_uid)
    node = _node(settings, paths)
    external = _external(settings, paths)
    sources = NodeSources(Handlers(settings.discovery, settings.embedded_handlers), external)
    async with (
        connect(settings.kubeconfig, user_agent=USER_AGENT) as client,
        asyncio.TaskGroup() as tasks,
    ):
        path = NodePath(client, settings.node_name, settings.path, PathLock(paths.path).take)
        cluster = NodeCluster(client, _place(settings, paths, path), sources, tasks)
        claims = _claims(settings, node, client, cluster)
        events = EventRecorder(client, f"{DRIVER_NAME}/driver", settings.node_name)
        tasks.create_task(events.run())
        node_claims = NodeClaims(client, settings.node_name, claims, events.record)
        cluster.on_seen(node_claims.devices_changed)
        tasks.create_task(cluster.run())
        tasks.create_task(external.run())
        for socket in _registration_sockets(settings, external):
            tasks.create_task(socket.serve())
        standing = Standing(cluster, path)
        tasks.create_task(_offer_slots(client, settings, standing, events.record))
        ready = paths.data / socket_name(settings.pod_uid)
        tasks.create_task(ready_socket.serve(ready, standing.why_not))
        tasks.create_task(
            tell(
                settings.metrics_address,
                standing.why_not,
                lambda: handler_figures(sources.standings()),
                lambda: inventory_figures(cluster.inventory),
                lambda: CLAIMS_PREPARED.single(node.claims_prepared),
            )
        )
        if await _has_claims(settings, paths, path):
            async with serve(paths, claims, cluster) as standing.registration:
                await asyncio.gather(
                    node_claims.run(), ClaimStatuses(client, settings.node_name, claims).run()
                )


def _external(settings: NodeSettings, paths: KubeletPaths) -> ExternalHandlers:
    """Handlers of other processes, those that registered with an earlier one included."""
    external = ExternalHandlers(
        Folder(paths.data), limits=settings.handler_limits, tls=settings.handler_tls
    )
    external.recall()
    return external


def _node(settings: NodeSettings, paths: KubeletPaths) -> Node:
    """What is granted on this node, on its disk."""
    node = Node(
        settings.node_name,
        boot_id(),
        data=Folder(paths.data, lasting=False),
        cdi_files=Folder(settings.cdi_root, lasting=False),
        lock=ProcessLock(paths.lock),
    )
    node.metadata = MetadataFiles(paths.metadata)
    return node


def _place(settings: NodeSettings, paths: KubeletPaths, path: NodePath) -> OfferPlace:
    return OfferPlace(
        settings.node_name,
        path,
        settings.unique_devices_default == "true",
        int(settings.instance_hash_digits),
        _homes(Folder(paths.data), settings.node_name),
    )


def _claims(
    settings: NodeSettings, node: Node, client: ApiClient, cluster: NodeCluster
) -> KubeletClaims:
    claims = KubeletClaims(
        node,
        ClaimReader(client),
        cluster,
        pools=frozenset({settings.node_name}),
        mount_paths=settings.handler_limits.mount_paths,
    )
    claims.uses = KubeletUses(settings.kubelet_root)
    return claims


def _homes(data: Folder, node: NodeName) -> Homes:
    """Where devices stay that claims have, though their slices may be lost."""
    text = data.read(CHECKPOINT)
    claims = None if text is None else load(text, node)
    return prepared_homes(claims.values(), node) if isinstance(claims, Mapping) else {}


def _registration_sockets(
    settings: NodeSettings, external: ExternalHandlers
) -> Iterator[RegistrationSocket]:
    """Where discovery handlers of other processes register."""
    if settings.handler_registration_socket is not None:
        yield RegistrationSocket(settings.handler_registration_socket, external.register)
    if (folder := settings.network_handlers_folder) is not None:
        register = partial(external.register, folder=str(folder))
        access = Access(settings.network_handlers_group)
        yield RegistrationSocket(folder / AGENT_SOCKET, register, access)


async def _has_claims(settings: NodeSettings, paths: KubeletPaths, path: NodePath) -> bool:
    """Whether the kubelet may ask for claims: what was prepared on the other path ends in time."""
    if settings.path is OfferPath.DRA or Folder(paths.data).read(CHECKPOINT) is not None:
        return True
    return (await path.taken()).serves_slices


@dataclass
class Standing:
    """Whether this process does its work; an update ends its predecessor only when it does.

    Attributes:
        registration: What the kubelet thinks of it as a plugin for claims; None until it may ask.
        introduced: Whether the kubelet was told of all device plugins; once is enough.
    """

    cluster: NodeCluster
    path: NodePath
    registration: Registration | None = None
    introduced: Callable[[], bool] = lambda: False
    _was_introduced: bool = False

    def why_not(self) -> str:
        """A sentence; "" if it does."""
        if self.path.awaits_turn:
            return ""
        if self.cluster.inventory is None:
            return self.cluster.why_unknown()
        if not self.path.is_dra:
            self._was_introduced = self._was_introduced or self.introduced()
            return "" if self._was_introduced else "The kubelet does not know the devices yet."
        if self.registration is None:
            return "The sockets for the kubelet are not open yet."
        return self.registration.problem


async def _offer_slots(
    client: ApiClient,
    settings: NodeSettings,
    standing: Standing,
    record: Callable[[Event], None],
) -> None:
    """Offer devices through device plugins, or free what is left of that, by the path."""
    cluster, path = standing.cluster, standing.path
    place = NodePlace(settings.node_name, settings.kubelet_root, settings.cdi_root)
    if (await path.taken()).is_dra:
        await cluster.decided()
        await free_leftovers(client, place, cluster.stored_instances, record, cluster)
    # Its stubs take memory that the other path can do without.
    from driver.device_plugin.node_slots import NodeSlots

    slots = NodeSlots(client, place, cluster, record)
    standing.introduced = lambda: slots.are_introduced
    with SNAPSHOTS.reading(lambda: node_slot_figures(slots.views(), settings.node_name)):
        await slots.run()
