"""The contract of the kubelet by which this node offers its devices, found out at the start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from driver.api import NodeName
from driver.configurations.apiserver_classes import probe_extended_resources
from driver.offer_paths import OfferPath, taken_path
from driver.plumbing.apiserver import until_done
from driver.publishing.apiserver_slices import probe_features
from driver.publishing.desired.slices import Features
from kube.calls.api import ApiClient

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TakenPath:
    """How this node offers its devices.

    Attributes:
        features: What the API server keeps of a device; None if it serves no ResourceSlices.
    """

    path: OfferPath
    features: Features | None

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
        found = await self._found()
        self.waits_for_others = True
        await self._wait_for_others(found.path)
        self.waits_for_others = False
        logger.info("devices are offered path=%s", found.path)
        self._taken.set_result(found)
        return found

    async def _found(self) -> TakenPath:
        features = await until_done(
            lambda: probe_features(self._client, self._node),
            name="asking the API server for its features",
        )
        if features is None:
            logger.warning(
                "the API server serves no ResourceSlices: nothing is published through DRA"
            )
        path = taken_path(
            self._wanted,
            slices_are_served=features is not None,
            extended_resources=features is not None and await self._keeps_extended_resources(),
        )
        return TakenPath(path, features)

    async def _keeps_extended_resources(self) -> bool:
        if self._wanted is not OfferPath.AUTO:
            return False
        kept = await until_done(
            lambda: probe_extended_resources(self._client),
            name="asking the API server for extended resources",
        )
        return bool(kept)
