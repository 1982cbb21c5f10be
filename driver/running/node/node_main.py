"""Builds and runs the driver of a node, `moorage-driver node`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from driver.api import DRIVER_NAME
from driver.device_plugin.node_remaining_slots import NodePlace, release_remaining_slots
from driver.discovery.handlers import Handlers
from driver.handlers.external_handlers import ExternalHandlers
from driver.handlers.node_sources import NodeSources
from driver.handlers.registration_socket import RegistrationSocket
from driver.handlers.sdk_requests import AGENT_SOCKET
from driver.offer_paths import OfferPath
from driver.plumbing.disk import Folder, boot_id
from driver.plumbing.disk_lock import ProcessLock
from driver.plumbing.kubelet_sockets import Access, KubeletPaths
from driver.plumbing.prometheus import SNAPSHOTS
from driver.preparing.apiserver_claims import ApiClaims
from driver.preparing.apiserver_status import ClaimStatuses
from driver.preparing.files.disk_metadata import MetadataFiles
from driver.preparing.files.prepared import VERSION, PreparedClaim, prepared_homes
from driver.preparing.grants.disk_grants import Node
from driver.preparing.grants.disk_host import on_this_host
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.kubelet_plugin import Registration, serve
from driver.preparing.node_claims import NodeClaims
from driver.preparing.node_lost_claims import LostClaims
from driver.preparing.node_stale_claims import StaleClaims
from driver.publishing.apiserver_path import NodePath
from driver.publishing.disk_path_lock import PathLock
from driver.running.monitoring import ready_socket
from driver.running.monitoring.prometheus_figures import (
    claim_figures,
    handler_figures,
    inventory_figures,
    node_slot_figures,
    serve_metrics,
)
from driver.running.monitoring.ready_main import socket_name
from driver.running.node.node_cluster import NodeCluster
from driver.running.node.node_place import OfferPlace
from driver.running.node_settings import NodeSettings
from kube.calls.api import ApiClient, connect, keep_warm
from kube.events.api import Event, EventRecorder
from kube.processes.api import trace_to

USER_AGENT = "moorage-driver-node"
"""User agent of its requests in audit logs."""


async def run_node(settings: NodeSettings) -> None:
    """Serve one node until cancelled.

    The kubelet is served from the start, from records if necessary: granted claims are served
    although the API server may be unreachable.

    Raises:
        FeaturesChangedError: The API server was upgraded, and keeps other fields.
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
        cluster = NodeCluster(client, _place(settings, node, path), sources, tasks)
        claims = _claims(settings, node, client, cluster)
        events = EventRecorder(client, f"{DRIVER_NAME}/driver", settings.node_name)
        node_claims = NodeClaims(client, settings.node_name, claims, events.record)
        cluster.on_moved(node_claims.devices_changed)
        for runs in (events.run(), cluster.run(), external.run(), path.watch()):
            tasks.create_task(runs)
        tasks.create_task(keep_warm(client, path.read_version))
        for socket in _registration_sockets(settings, external):
            tasks.create_task(socket.serve())
        readiness = Readiness(cluster, path, node, paths.data)
        tasks.create_task(_offer_slots(client, settings, readiness, events.record))
        tasks.create_task(
            ready_socket.serve(paths.data / socket_name(settings.pod_uid), readiness.why_not)
        )
        tasks.create_task(
            serve_metrics(
                settings.metrics_address,
                readiness.why_not,
                lambda: handler_figures(sources.standings()),
                lambda: inventory_figures(cluster.inventory),
                lambda: claim_figures(node.prepared, node.doubtful),
            )
        )
        if await _has_claims(settings, node, path):
            reconcilers = (
                node_claims,
                ClaimStatuses(client, settings.node_name, claims, cluster),
                LostClaims(client, settings.node_name, claims),
                _stale(settings, claims, client, events.record),
            )
            async with serve(paths, claims, cluster) as readiness.registration:
                await asyncio.gather(*(reconciler.run() for reconciler in reconcilers))


def _stale(
    settings: NodeSettings,
    claims: KubeletClaims,
    client: ApiClient,
    record: Callable[[Event], None],
) -> StaleClaims:
    return StaleClaims(
        client,
        settings.node_name,
        settings.kubelet_root,
        claims,
        settings.stale_claim_grace,
        record,
    )


def _external(settings: NodeSettings, paths: KubeletPaths) -> ExternalHandlers:
    """Handlers in other processes, restored from the registrations of an earlier process."""
    external = ExternalHandlers(
        Folder(paths.data),
        limits=settings.handler_limits,
        tls=settings.handler_tls,
        dev=settings.dev,
    )
    external.recall()
    return external


def _node(settings: NodeSettings, paths: KubeletPaths) -> Node:
    """The grants of this node, on its disk."""
    node = Node(
        settings.node_name,
        boot_id(),
        data=Folder(paths.data),
        cdi_files=Folder(settings.cdi_root),
        lock=ProcessLock(paths.lock),
    )
    node.files.metadata = MetadataFiles(paths.metadata)
    return node


def _place(settings: NodeSettings, node: Node, path: NodePath) -> OfferPlace:
    """The place with the homes of prepared devices, which stay even if their slices are lost."""
    return OfferPlace(
        settings.node_name,
        path,
        settings.unique_devices_default == "true",
        int(settings.instance_hash_digits),
        prepared_homes(node.peek(), settings.node_name),
        settings.environment_rules,
        settings.dev,
    )


def _claims(
    settings: NodeSettings, node: Node, client: ApiClient, cluster: NodeCluster
) -> KubeletClaims:
    return KubeletClaims(
        node,
        ApiClaims(client, settings.node_name),
        cluster,
        pools=frozenset({settings.node_name}),
        on_host=on_this_host(settings.handler_limits.mount_paths, settings.dev.resolve),
    )


def _registration_sockets(
    settings: NodeSettings, external: ExternalHandlers
) -> Iterator[RegistrationSocket]:
    """The sockets at which discovery handlers in other processes register."""
    if settings.handler_registration_socket is not None:
        yield RegistrationSocket(settings.handler_registration_socket, external.register)
    if (folder := settings.network_handlers_folder) is not None:
        register = partial(external.register, folder=str(folder))
        access = Access(settings.network_handlers_group)
        yield RegistrationSocket(folder / AGENT_SOCKET, register, access)


async def _has_claims(settings: NodeSettings, node: Node, path: NodePath) -> bool:
    """Whether the kubelet may call about claims; without DRA earlier claims may still exist."""
    if settings.path is OfferPath.DRA or any(node.peek()):
        return True
    return (await path.taken()).serves_slices


@dataclass
class Readiness:
    """The readiness of this process. An update ends its predecessor only when it is ready.

    Attributes:
        data: The driver's own folder.
        registration: Its registration with the kubelet as a DRA plugin; None until it has one.
        introduced: Whether the kubelet was told of all device plugins; once is enough.
    """

    cluster: NodeCluster
    path: NodePath
    node: Node
    data: Path
    registration: Registration | None = None
    introduced: Callable[[], bool] = lambda: False
    _was_introduced: bool = False

    def why_not(self) -> str:
        """Why it is not ready, as a sentence; "" if it is."""
        if self.path.waits_for_others:
            return ""
        if self.cluster.inventory is None:
            return self.cluster.why_unknown()
        if not self.path.is_dra:
            self._was_introduced = self._was_introduced or self.introduced()
            return "" if self._was_introduced else "The kubelet does not know all devices yet."
        if self.registration is None:
            return "The sockets for the kubelet are not open yet."
        if problem := self.node.folder_problem:
            return _unwritable(problem)
        if problem := self.node.metadata_problem:
            return _no_metadata(problem)
        if problem := self.node.rescue_problem:
            return _unread(self.data, problem)
        newer = (c for c in self.node.doubtful.values() if c.version > VERSION)
        return next(map(_newer, newer), self.registration.problem)


def _unwritable(problem: str) -> str:
    return (
        f"CDI files cannot be written: {problem}. The driver prepares no claim on this node until"
        " they can be written. If the folder was removed while the driver's pod ran, delete the"
        " pod: the next pod has a new folder, and writes the files of claims in use into it."
    )


def _no_metadata(problem: str) -> str:
    return (
        f"Device metadata cannot be written: {problem}. Until it can be written, the driver"
        " prepares no claim on this node whose containers get device metadata."
    )


def _unread(data: Path, problem: str) -> str:
    return (
        f"It is not known which claims are prepared on this node: in {data}, {problem}. The driver"
        " prepares no new claim until the file can be read, or is removed. Drain the node before"
        " you remove it: it may name the devices of running pods. A file that was renamed counts"
        " until a reboot."
    )


def _newer(claim: PreparedClaim) -> str:
    return (
        f"The record of claim {claim.reference} {claim.doubt}: a newer driver prepared it. The"
        " driver does not change it, and prepares no new claim until this claim has ended or the"
        " newer driver is back."
    )


async def _offer_slots(
    client: ApiClient,
    settings: NodeSettings,
    readiness: Readiness,
    record: Callable[[Event], None],
) -> None:
    """Offer devices through device plugins; on the path DRA release remaining slots instead."""
    cluster, path = readiness.cluster, readiness.path
    place = NodePlace(
        settings.node_name, settings.kubelet_root, settings.cdi_root, settings.dev.resolve
    )
    if (await path.taken()).is_dra:
        await cluster.decided()
        await release_remaining_slots(client, place, cluster.stored_instances, record, cluster)
    # Imported late: the gRPC stubs take memory that the path DRA does not need.
    from driver.device_plugin.node_slots import NodeSlots

    slots = NodeSlots(client, place, cluster, record)
    readiness.introduced = lambda: slots.are_introduced
    with SNAPSHOTS.reading(lambda: node_slot_figures(slots.views(), settings.node_name)):
        await slots.run()
