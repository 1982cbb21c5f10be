"""The contract of the kubelet by which this node offers its devices, found out at the start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn

from driver.api import NodeName
from driver.configurations.apiserver_classes import probe_extended_resources
from driver.offer_paths import OfferPath, prepares_extended_resources, taken_path
from driver.plumbing.apiserver import until_done
from driver.publishing.apiserver_slices import probe_features
from driver.publishing.apiserver_upgrades import Upgrades
from driver.publishing.desired.slices import Features
from driver.server_versions import FeaturesChangedError
from kube.calls.api import ApiClient
from kube.kinds import NODES

logger = logging.getLogger(__name__)

KUBELET_SECONDS = 300.0
"""How often a kubelet that was too old for the path DRA is looked at again."""


@dataclass(frozen=True, slots=True)
class TakenPath:
    """How this node offers its devices.

    Attributes:
        features: What the API server keeps of a device; None if it serves no ResourceSlices.
        waits_for_kubelet: Whether only the age of the kubelet keeps this node from the path DRA.
    """

    path: OfferPath
    features: Features | None
    waits_for_kubelet: bool = False

    @property
    def is_dra(self) -> bool:
        return self.path is OfferPath.DRA

    @property
    def serves_slices(self) -> bool:
        return self.features is not None


class NodePath:
    """The path of one node, known once no other driver of the node takes another path.

    Attributes:
        waits_for_others: Whether this driver waits for other drivers of the node to end.
    """

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        wanted: OfferPath,
        wait_for_others: Callable[[OfferPath], Awaitable[None]],
    ) -> None:
        """Create; `wait_for_others` waits until no driver of the node takes another path."""
        self.waits_for_others = False
        self._client = client
        self._node = node
        self._wanted, self._wait_for_others = wanted, wait_for_others
        self._upgrades = Upgrades(client, self._found)
        self._taken: asyncio.Future[TakenPath] = asyncio.get_running_loop().create_future()

    @property
    def is_dra(self) -> bool:
        """Whether the path is taken and is DRA."""
        return self._taken.done() and self._taken.result().is_dra

    async def taken(self) -> TakenPath:
        """Wait until the path is taken, and return it."""
        return await asyncio.shield(self._taken)

    async def take(self) -> TakenPath:
        """Ask the API server until it answers, then wait for drivers of another path to end.

        Call once. Objects that are read afterwards hold everything that those drivers wrote.
        """
        found = await self._upgrades.found()
        self.waits_for_others = True
        await self._wait_for_others(found.path)
        self.waits_for_others = False
        logger.info("devices are offered path=%s", found.path)
        self._taken.set_result(found)
        return found

    def read_version(self, version: str) -> None:
        """Take a reading of the API server's version."""
        self._upgrades.read(version)

    async def watch(self) -> None:
        """Find the path anew after each upgrade of API server or kubelet, once it is taken.

        Raises:
            FeaturesChangedError: The path or what the API server keeps has changed.
        """
        taken = await self.taken()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._upgrades.watch(taken))
            if taken.waits_for_kubelet:
                tasks.create_task(self._until_kubelet_is_new())

    async def _until_kubelet_is_new(self) -> NoReturn:
        while True:
            await asyncio.sleep(KUBELET_SECONDS)
            if await self._kubelet_is_new():
                raise FeaturesChangedError(
                    "the kubelet is upgraded and prepares claims of extended resources. This"
                    " process ends; the next one offers devices through DRA"
                )

    async def _found(self) -> TakenPath:
        features = await until_done(
            lambda: probe_features(self._client, self._node),
            name="asking the API server for its features",
        )
        if features is None:
            logger.warning(
                "the API server serves no ResourceSlices: nothing is published through DRA"
            )
        kept = features is not None and await self._keeps_extended_resources()
        is_new = not kept or await self._kubelet_is_new()
        if not is_new:
            logger.warning("the kubelet is older than 1.36: devices are not offered through DRA")
        path = taken_path(
            self._wanted,
            slices_are_served=features is not None,
            extended_resources=kept and is_new,
        )
        return TakenPath(path, features, waits_for_kubelet=not is_new)

    async def _keeps_extended_resources(self) -> bool:
        if self._wanted is not OfferPath.AUTO:
            return False
        kept = await until_done(
            lambda: probe_extended_resources(self._client),
            name="asking the API server for extended resources",
        )
        return bool(kept)

    async def _kubelet_is_new(self) -> bool:
        """Whether this node's kubelet prepares claims of extended resources."""
        node = await until_done(
            lambda: self._client.get(NODES.at(self._node)),
            name="reading the version of the kubelet",
        )
        info = node.get("status", {}).get("nodeInfo", {})
        return prepares_extended_resources(info.get("kubeletVersion", ""))
