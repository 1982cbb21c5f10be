"""The pool of a node: decided, written, and its claims followed while a device is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from driver.api import DRIVER_NAME, DeviceName, NodeName
from driver.publishing.apiserver_allocations import AllocationWatch
from driver.publishing.apiserver_pools import Pool, PoolPublisher, StoredSlices
from driver.publishing.apiserver_slices import read_owner
from driver.publishing.shown.publication import Publication, Supply, publish
from driver.publishing.shown.slices import Features
from driver.publishing.written.resource_slices import NodeScope, SliceView, slice_view
from kube.api import SLICES, ApiClient, Store

_WITHOUT_DRA = Features(consumable_capacity=False, taints=False)


class NodePool:
    """What a node shows of its own devices in ResourceSlices.

    Attributes:
        features: What the API server keeps of a device; None where it knows no ResourceSlices,
            or that is not known yet.
        slices: Those of this node, as the API server has them; to be run where there are any.
    """

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        tasks: asyncio.TaskGroup,
        changed: Callable[[], None],
    ) -> None:
        """`changed` hears that claims have, or have no more, what is away."""
        self.features: Features | None = None
        fields = f"spec.driver={DRIVER_NAME},spec.nodeName={node}"
        self.slices: Store[SliceView] = Store(
            client, SLICES.select(field_selector=fields), slice_view
        )
        self._node = node
        self._allocations = AllocationWatch(client, [node].__contains__, tasks, changed)
        self._publisher = PoolPublisher(
            client,
            Pool(
                name=node,
                scope=NodeScope(node),
                stays=True,
                read_owner=lambda: read_owner(client, node),
            ),
            StoredSlices(lambda: self.slices, self.slices.note),
        )

    def recall(self) -> None:
        """Go on from what an earlier process published; the slices must be in sync."""
        self._publisher.recall()

    def decide(self, supply: Supply, now: datetime) -> Publication:
        """What the pool is to show of this supply."""
        return publish(
            supply,
            self._publisher.written,
            self.features or _WITHOUT_DRA,
            allocated=self._allocated(),
            now=now,
        )

    def _allocated(self) -> frozenset[DeviceName] | None:
        if self.features is None:
            return frozenset()
        return self._allocations.allocated_in(self._node)

    async def write(self, publication: Publication) -> None:
        """Have the pool show this, and follow claims as long as it needs that.

        Raises:
            ApiError: A write failed; decide and write again.
        """
        try:
            if self.features is not None:
                await self._publisher.write(publication)
            else:
                self._publisher.written = publication
        finally:
            self._follow_claims(publication)

    def _follow_claims(self, publication: Publication) -> None:
        if not publication.away or self.features is None:
            self._allocations.turn_off()
        elif publication.unsettled:
            self._allocations.renew()
        else:
            self._allocations.turn_on()
