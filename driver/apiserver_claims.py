"""The API server's ResourceClaims: which devices of this node some claim has.

A node does not watch all claims of the cluster for nothing: it does so only while a device that
went away is still published, to learn when that device may be removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from driver.api import DRIVER_NAME, DeviceName, NodeName
from driver.apiserver import CLAIMS
from kube.api import ApiClient, JsonObject, Store


class AllocationWatch:
    """Watches claims while it is on.

    Attributes:
        allocated: Devices of this node's pool that a claim has; None while that is not known.
    """

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        tasks: asyncio.TaskGroup,
        on_change: Callable[[], None],
    ) -> None:
        self._client = client
        self._pool = node
        self._tasks = tasks
        self._on_change = on_change
        self._store: Store[frozenset[DeviceName]] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def allocated(self) -> frozenset[DeviceName] | None:
        if self._store is None or not self._store.synced.is_set():
            return None
        return frozenset().union(*self._store)

    def turn_on(self) -> None:
        """Begin to watch; called again, nothing happens."""
        if self._task is None:
            self._store = Store(self._client, CLAIMS.select(), self._devices)
            self._task = self._tasks.create_task(self._run(self._store), name="watch allocations")

    def turn_off(self) -> None:
        """Forget everything; called again, nothing happens."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._store = None

    async def _run(self, store: Store[frozenset[DeviceName]]) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(store.run())
            await store.synced.wait()
            store.subscribe(lambda _: self._on_change())
            self._on_change()

    def _devices(self, claim: JsonObject) -> frozenset[DeviceName] | None:
        """The projection: None, that is, not stored, where the claim has none of our devices."""
        allocation = (claim.get("status") or {}).get("allocation") or {}
        results = (allocation.get("devices") or {}).get("results") or ()
        ours = frozenset(
            DeviceName(result["device"])
            for result in results
            if result["driver"] == DRIVER_NAME and result["pool"] == self._pool
        )
        return ours or None
